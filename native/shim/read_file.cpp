#include "shim/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace weft::shim {

CUresult read_file(const char* path, std::vector<char>* bytes) {
    const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    if (!fd) return CUDA_ERROR_FILE_NOT_FOUND;
    struct stat status;
    if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > (512 << 20))
        return CUDA_ERROR_INVALID_VALUE;
    bytes->assign(static_cast<std::size_t>(status.st_size) + 1, '\0');
    std::size_t done = 0;
    while (done + 1 < bytes->size()) {
        const ssize_t got = ::read(fd.get(), bytes->data() + done, bytes->size() - 1 - done);
        if (got <= 0) return CUDA_ERROR_INVALID_VALUE;
        done += static_cast<std::size_t>(got);
    }
    return CUDA_SUCCESS;
}

}  // namespace weft::shim
