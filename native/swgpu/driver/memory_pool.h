// Memory pools: a name for stream-ordered allocations, with counts and settings. A pool holds nothing back: what is
// freed returns to the device at once, so there is nothing to trim. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstdint>

#include "gen/cuda_abi.h"
#include "swgpu/driver/object.h"

namespace weft::swdriver {

class MemoryPool final : public Object {
  public:
    static constexpr Kind kKind = Kind::pool;
    MemoryPool(int device, std::uint64_t max_bytes) : Object(kKind), device_(device), max_bytes_(max_bytes) {}

    int device() const { return device_; }
    // False if the pool may not grow by so much.
    bool take(std::uint64_t bytes);
    void give_back(std::uint64_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_acq_rel); }
    CUresult get(CUmemPool_attribute attribute, void* value) const;
    CUresult set(CUmemPool_attribute attribute, const void* value);

  private:
    const int device_;
    const std::uint64_t max_bytes_;  // 0: no limit
    std::atomic<std::uint64_t> used_bytes_{0};
    std::atomic<std::uint64_t> used_high_bytes_{0};
    std::atomic<std::uint64_t> release_threshold_{0};
    std::atomic<int> reuse_[3]{1, 1, 1};
};

}  // namespace weft::swdriver
