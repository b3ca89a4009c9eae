#include "executor/output.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/log.h"

namespace weft::executor {

std::unique_ptr<CapturedOutput> CapturedOutput::start() {
    auto output = std::make_unique<CapturedOutput>();
    for (File& file : output->files_) {
        file.fd = UniqueFd(::memfd_create("weft-output", MFD_CLOEXEC));
        // Appending writers: the place where the next text goes is the file's, not a descriptor's.
        if (!file.fd || ::fcntl(file.fd.get(), F_SETFL, O_APPEND) != 0) return nullptr;
    }
    const int own_log = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (own_log < 0) return nullptr;
    set_log_descriptor(own_log);
    std::fflush(nullptr);
    if (::dup2(output->files_[0].fd.get(), STDOUT_FILENO) < 0 || ::dup2(output->files_[1].fd.get(), STDERR_FILENO) < 0)
        return nullptr;
    return output;
}

void CapturedOutput::take(const std::function<void(unsigned kind, std::string_view text)>& give) {
    std::fflush(stdout);  // a driver may use stdio
    std::fflush(stderr);
    take_from(files_[0], 1, give);
    take_from(files_[1], 2, give);
}

void CapturedOutput::take_from(File& file, unsigned kind, const std::function<void(unsigned, std::string_view)>& give) {
    struct stat status{};
    if (::fstat(file.fd.get(), &status) != 0) return;
    const auto end = static_cast<std::uint64_t>(status.st_size);
    if (end <= file.taken_bytes) return;
    std::vector<char> piece(kPieceBytes);
    const std::uint64_t start = file.taken_bytes;
    while (file.taken_bytes < end) {
        const std::size_t wanted = std::min<std::uint64_t>(piece.size(), end - file.taken_bytes);
        const ssize_t got = ::pread(file.fd.get(), piece.data(), wanted, static_cast<off_t>(file.taken_bytes));
        if (got <= 0) break;
        give(kind, {piece.data(), static_cast<std::size_t>(got)});
        file.taken_bytes += static_cast<std::uint64_t>(got);
    }
    // Gives the memory back. The file is not cut: somebody may be appending to it just now.
    (void)::fallocate(file.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(start),
                      static_cast<off_t>(file.taken_bytes - start));
}

}  // namespace weft::executor
