// Memory pools: names for stream-ordered allocations, with counts, a limit and settings. A pool holds nothing back:
// what is freed goes back to its device (device_memory.h), where the same stream has it again at once and others after
// the work before. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "gen/cuda_abi.h"

namespace weft::shim {

class MemoryPool {
  public:
    MemoryPool(int device, std::uint64_t max_bytes) : device_(device), max_bytes_(max_bytes) {}

    int device() const { return device_; }
    // False if the pool may not grow by so much.
    bool take(std::uint64_t bytes);
    void give(std::uint64_t bytes) { used_bytes_.fetch_sub(bytes); }
    CUresult get(CUmemPool_attribute attribute, void* value) const;
    CUresult set(CUmemPool_attribute attribute, const void* value);

  private:
    const int device_;
    const std::uint64_t max_bytes_;  // 0: no limit
    std::atomic<std::uint64_t> used_bytes_{0}, used_high_bytes_{0}, reserved_high_bytes_{0};
    std::atomic<std::uint64_t> release_threshold_bytes_{0};
    std::array<std::atomic<int>, 3> reuse_{1, 1, 1};
};

// The pools of one device, by their handles: the default one, made at first use, and that which cuMemAllocAsync uses.
struct DevicePools {
    std::mutex mutex;
    std::uint64_t standard = 0;
    std::uint64_t current = 0;
};

}  // namespace weft::shim
