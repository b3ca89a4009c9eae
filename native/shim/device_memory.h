// Device memory of one device as the program sees it: addresses are carved locally out of extents that the executor
// backs with memory. Freed memory waits until the work that may still use it is complete. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/range_heap.h"
#include "gen/cuda_abi.h"
#include "shim/progress.h"

namespace weft::shim {

class MemoryPool;
class Session;

class DeviceMemory {
  public:
    struct Window {
        std::uint64_t base = 0;
        std::uint64_t size_bytes = 0;
        std::uint64_t granularity_bytes = 2u << 20;
    };
    // cap_bytes: what the lease allows on this device.
    DeviceMemory(Session& session, Progress& progress, std::uint32_t device, Window window, std::uint64_t cap_bytes);

    // CUDA_ERROR_OUT_OF_MEMORY only if the lease (or the GPU itself) really has no room.
    // alignment: a power of two; 0: the usual one.
    CUresult allocate(std::uint64_t size_bytes, std::uint32_t context, CUdeviceptr* address,
                      std::uint64_t alignment = 0);
    // Memory that the pool counts (null: none). What was freed in the same stream with the same size is had again
    // without waiting: whatever used it comes before whatever is going to.
    CUresult allocate_in_stream(std::uint64_t size_bytes, std::uint32_t context, std::uint32_t stream,
                                const std::shared_ptr<MemoryPool>& pool, CUdeviceptr* address);
    // CUDA_ERROR_INVALID_VALUE unless a live allocation starts there.
    CUresult free(CUdeviceptr address) { return end(address, kNoStream); }
    CUresult free_in_stream(CUdeviceptr address, std::uint32_t stream) { return end(address, stream); }
    // Frees everything that was allocated in a context that is gone.
    void free_all_of(std::uint32_t context);
    // Number of the context that the allocation starting there was made in; 0 if none starts there.
    std::uint32_t context_of(CUdeviceptr address) const;

    std::optional<RangeHeap::Range> find(CUdeviceptr address) const;
    bool owns(CUdeviceptr address) const { return address - window_.base < window_.size_bytes; }
    std::uint64_t cap_bytes() const { return cap_bytes_; }
    std::uint64_t free_bytes() const;
    // Gives everything back that no allocation uses, for others who need memory of the same lease. False if there was
    // nothing.
    bool trim();
    // Memory that modules take for their globals.
    void add_module_bytes(std::int64_t bytes);

  private:
    static constexpr std::uint64_t kNoStream = UINT64_MAX;
    static constexpr std::size_t kReuseDepth = 64;  // so many of the blocks freed last are looked at
    struct Owner {
        std::uint32_t context = 0;
        std::shared_ptr<MemoryPool> pool;
    };
    struct Freed {
        std::uint64_t address, size, work;
        std::uint64_t asked_bytes;
        std::uint32_t context;
        std::uint64_t stream;  // number of the stream that it was freed in, or kNoStream
    };
    CUresult end(CUdeviceptr address, std::uint64_t stream);
    std::optional<CUdeviceptr> reuse(std::uint64_t size_bytes, std::uint32_t context, std::uint32_t stream);
    bool reclaim();
    CUresult grow(std::uint64_t size);
    std::optional<std::uint64_t> place_extent(std::uint64_t size, std::uint64_t* tail);
    bool unmap_idle_extents();
    bool wait_for_freed(std::unique_lock<std::mutex>& lock);
    void request_fence();
    CUresult send_fence();
    std::uint64_t room() const;

    Session& session_;
    Progress& progress_;
    const std::uint32_t device_;
    const Window window_;
    const std::uint64_t cap_bytes_;
    mutable std::mutex mutex_;
    RangeHeap heap_{512};
    std::map<std::uint64_t, Owner> owners_;           // of live allocations, by address
    RangeHeap returned_;                              // window space of unmapped extents
    std::uint64_t frontier_;                          // window space never used starts here
    std::map<std::uint64_t, std::uint64_t> extents_;  // mapped: address -> size
    std::uint64_t mapped_bytes_ = 0;
    std::uint64_t module_bytes_ = 0;
    std::deque<Freed> freed_;  // by rising work
    std::uint64_t fence_sent_ = 0;
};

}  // namespace weft::shim
