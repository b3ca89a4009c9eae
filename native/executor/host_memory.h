// Page-locked host memory of the executor: blocks for bytes that wait (parked payloads, small copies), and page-locking
// of the channel's buffers and segments: to pageable memory a driver copies synchronously, which would stop the
// session's loop. Design note: docs/design/executor.md.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gen/driver_table.h"

namespace weft::executor {

class HostMemory {
  public:
    explicit HostMemory(const driver::DriverTable& driver) : driver_(driver) {}
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    // A block of at least size_bytes, given back to the pool with its last owner. A context must be current; nullptr:
    // no memory.
    std::shared_ptr<std::byte> acquire(std::size_t size_bytes);
    // Page-locks memory of someone else in the current context, unless it is already; a failure is only slower. Call
    // before every use: page-locking ends with the context that it was done in.
    void pin(void* address, std::size_t size_bytes);
    // Before that memory is unmapped.
    void unpin(void* address);
    // Before a context is destroyed, while it is current: lets go of what was page-locked in it.
    void context_ends(CUcontext context);
    // Bytes of blocks that somebody owns.
    std::size_t used_bytes() const { return used_bytes_; }

  private:
    static constexpr std::array<std::size_t, 3> kClasses = {8u << 10, 256u << 10, 1u << 20};
    static constexpr std::size_t kKeptPerClass = 64;
    std::byte* allocate(std::size_t size_bytes);
    void release(std::byte* block, std::size_t class_index);

    const driver::DriverTable& driver_;
    std::size_t used_bytes_ = 0;
    std::array<std::vector<std::byte*>, kClasses.size()> free_;
    std::unordered_map<void*, CUcontext> pinned_;  // by address: the context it was done in
};

}  // namespace weft::executor
