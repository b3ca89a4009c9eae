// The memory of one device: how much of it is taken, and the arena of addresses that cuMemAlloc and module globals
// carve from. The arena is readable and writable as a whole and backed lazily, so a stray access can harm results but
// never the process. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/range_heap.h"

namespace weft::swdriver {

inline constexpr std::uint64_t kAllocationAlignment = 512;
inline constexpr std::uint64_t kMappingGranularity = 2ull << 20;

class DeviceMemory {
  public:
    DeviceMemory(int device, std::uint64_t total_bytes)
        : device_(device), total_bytes_(total_bytes), heap_(kAllocationAlignment) {}

    std::uint64_t total_bytes() const { return total_bytes_; }
    std::uint64_t free_bytes() const { return total_bytes_ - used_bytes_.load(std::memory_order_acquire); }
    // Counts bytes against the total; false if they do not fit.
    bool charge(std::uint64_t bytes);
    void refund(std::uint64_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_acq_rel); }

    // Memory for `size` bytes, charged. nullopt: out of memory (or of address space, which is logged).
    std::optional<std::uint64_t> allocate(std::uint64_t size);
    // Ends the allocation that starts at address and gives its memory back.
    void release(std::uint64_t address);

  private:
    bool reserve_arena();

    const int device_;
    const std::uint64_t total_bytes_;
    std::atomic<std::uint64_t> used_bytes_{0};
    std::mutex mutex_;  // of heap_ and arena_
    RangeHeap heap_;
    std::uint64_t arena_ = 0;
};

}  // namespace weft::swdriver
