// Page-locked host memory: which ranges of this process are known to Weft, and in which shared segment they lie (shm).
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/range_heap.h"
#include "gen/cuda_abi.h"

namespace weft::shim {

class Session;

struct HostRange {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    unsigned flags = 0;         // as given to cuMemHostAlloc or cuMemHostRegister
    bool registered = false;    // memory of the program, by cuMemHostRegister
    std::uint32_t segment = 0;  // shm: number of the shared segment; 0: none
    std::uint64_t offset = 0;   // of address in the segment
    std::uint32_t context = 0;  // number of the context it was made in
};

class HostMemory {
  public:
    explicit HostMemory(Session& session) : session_(session) {}

    CUresult allocate(std::uint64_t size_bytes, unsigned flags, std::uint32_t context, void** address);
    // INVALID_VALUE unless an allocation (registered: a registration) starts there. The caller has made sure that no
    // work uses it.
    CUresult free(void* address);
    CUresult add(void* address, std::uint64_t size_bytes, unsigned flags, std::uint32_t context);
    CUresult remove(void* address);
    // Everything that was made in a context that is gone.
    void free_all_of(std::uint32_t context);
    // The range that holds all of [address, address + size).
    std::optional<HostRange> find(const void* address, std::uint64_t size_bytes = 1) const;

  private:
    struct Segment {
        std::uint32_t number;
        std::uint64_t address, size_bytes;
        std::unique_ptr<RangeHeap> heap;  // null: one allocation takes it all
    };
    CUresult allocate_shared(std::uint64_t size_bytes, HostRange* range);
    CUresult allocate_private(std::uint64_t size_bytes, HostRange* range);
    Segment* open_segment(std::uint64_t size_bytes);
    void free_shared(const HostRange& range);

    Session& session_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, HostRange> ranges_;  // by address
    std::vector<Segment> segments_;
    std::uint32_t next_segment_ = 0;
};

}  // namespace weft::shim
