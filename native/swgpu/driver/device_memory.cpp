// The arena has four times the addresses of the memory, so that fragmentation of addresses cannot fail an allocation
// that fits.
#include "swgpu/driver/device_memory.h"

#include <sys/mman.h>

#include <string>

#include "swgpu/driver/log.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace weft::swdriver {
namespace {

constexpr std::uint64_t kFirstArena = 0x2000'0000'0000;   // above what kernels and loaders use, below the stacks
constexpr std::uint64_t kArenaStride = 0x0100'0000'0000;  // per device
constexpr std::uint64_t kRetryStride = 0x1000'0000'0000;
constexpr int kTries = 5;
constexpr std::uint64_t kReturnedAtOnceBytes = 1ull
                                               << 20;  // smaller freed pieces stay resident for the next allocation
constexpr std::uint64_t kPageBytes = 4096;

void return_pages(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t first = (address + kPageBytes - 1) & ~(kPageBytes - 1);
    const std::uint64_t last = (address + size) & ~(kPageBytes - 1);
    if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace

bool DeviceMemory::charge(std::uint64_t bytes) {
    std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
        if (bytes > total_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel));
    return true;
}

bool DeviceMemory::reserve_arena() {
    for (std::uint64_t size = total_bytes_ * 4 < kArenaStride ? total_bytes_ * 4 : kArenaStride; size >= total_bytes_;
         size /= 2) {
        for (int attempt = 0; attempt < kTries; ++attempt) {
            const std::uint64_t wanted = kFirstArena + kRetryStride * static_cast<unsigned>(attempt) +
                                         kArenaStride * static_cast<unsigned>(device_);
            void* got = mmap(reinterpret_cast<void*>(wanted), size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == MAP_FAILED) continue;
            if (reinterpret_cast<std::uint64_t>(got) != wanted) {  // a kernel that does not know the flag
                munmap(got, size);
                continue;
            }
            madvise(got, size, MADV_HUGEPAGE);
            madvise(got, size, MADV_DONTFORK);
            madvise(got, size, MADV_DONTDUMP);
            arena_ = wanted;
            heap_.add(wanted, size);
            return true;
        }
    }
    log_message(LogLevel::error, "cannot reserve " + std::to_string(total_bytes_) +
                                     " bytes of address space for device memory (ulimit -v?)");
    return false;
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t size) {
    if (size == 0 || size > total_bytes_) return std::nullopt;
    const std::uint64_t rounded = heap_.round(size);
    if (!charge(rounded)) return std::nullopt;
    std::lock_guard lock(mutex_);
    std::optional<std::uint64_t> address;
    if (arena_ != 0 || reserve_arena()) address = heap_.allocate(size);
    if (!address) refund(rounded);
    return address;
}

void DeviceMemory::release(std::uint64_t address) {
    std::uint64_t rounded = 0;
    {
        std::lock_guard lock(mutex_);
        auto detached = heap_.detach(address);
        if (!detached) return;
        rounded = *detached;
        if (rounded >= kReturnedAtOnceBytes) return_pages(address, rounded);
        heap_.release(address, rounded);
    }
    refund(rounded);
}

}  // namespace weft::swdriver
