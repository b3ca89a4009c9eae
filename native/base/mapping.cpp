#include "base/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace weft {

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

}  // namespace

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    if (this != &other) {
        unmap();
        data_ = std::exchange(other.data_, nullptr);
        mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
    }
    return *this;
}

Mapping::~Mapping() { unmap(); }

void Mapping::unmap() {
    if (data_ == nullptr) return;
    int saved = errno;
    ::munmap(data_, mapped_bytes_);
    errno = saved;
    data_ = nullptr;
}

Result<Mapping> Mapping::shared(int fd, std::size_t offset, std::size_t size_bytes) {
    void* data = ::mmap(nullptr, size_bytes, kReadWrite, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
    if (data == MAP_FAILED) return Status::from_errno("mmap", errno);
    return Mapping(data, size_bytes);
}

Result<Mapping> Mapping::ring(int fd, std::size_t offset, std::size_t size_bytes) {
    void* range = ::mmap(nullptr, 2 * size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return Status::from_errno("mmap", errno);
    Mapping mapping(range, 2 * size_bytes);
    for (std::size_t half = 0; half < 2; ++half) {
        void* at = mapping.data() + half * size_bytes;
        void* got = ::mmap(at, size_bytes, kReadWrite, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset));
        if (got == MAP_FAILED) return Status::from_errno("mmap", errno);
    }
    return mapping;
}

Result<Mapping> Mapping::anonymous(std::size_t size_bytes) {
    void* data = ::mmap(nullptr, size_bytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return Status::from_errno("mmap", errno);
    return Mapping(data, size_bytes);
}

Result<UniqueFd> make_memory_file(const char* label, std::size_t size_bytes, bool allow_sealing) {
    UniqueFd fd(::memfd_create(label, MFD_CLOEXEC | (allow_sealing ? MFD_ALLOW_SEALING : 0u)));
    if (!fd) return Status::from_errno("memfd_create", errno);
    if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) return Status::from_errno("ftruncate", errno);
    return fd;
}

}  // namespace weft
