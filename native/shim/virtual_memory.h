// Virtual memory management of the program: reservations at the same addresses here and at the server, memory without
// an address, and its mappings. Here is only told what there is; the calls send frames (api_virtual.cpp). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "gen/cuda_abi.h"

namespace weft::shim {

struct Device;

// Memory without an address. It lives as long as a handle or a mapping does.
struct PhysicalMemory {
    std::uint32_t number = 0;
    Device* device = nullptr;
    std::uint64_t size_bytes = 0;
    std::uint64_t handle = 0;
    // Under the lock of VirtualMemory.
    unsigned handles = 1;
    unsigned mappings = 0;
};

struct VirtualMapping {
    std::uint64_t address = 0;
    std::shared_ptr<PhysicalMemory> memory;
    std::map<int, unsigned> access;  // by device: CUmemAccess_flags
};

class VirtualMemory {
  public:
    bool is_used() const { return is_used_.load(std::memory_order_relaxed); }

    void add_reservation(std::uint64_t address, std::uint64_t size_bytes);
    // False unless exactly this was reserved and nothing is mapped in it.
    bool remove_reservation(std::uint64_t address, std::uint64_t size_bytes);
    // True if the range lies in a reservation and nothing is mapped there.
    bool is_free(std::uint64_t address, std::uint64_t size_bytes) const;

    void add_mapping(std::uint64_t address, const std::shared_ptr<PhysicalMemory>& memory);
    // The mapping that begins there.
    std::optional<VirtualMapping> mapping_at(std::uint64_t address) const;
    std::optional<VirtualMapping> find(std::uint64_t address) const;
    // True if neither handle nor mapping is left of its memory.
    bool remove_mapping(std::uint64_t address);
    void set_access(std::uint64_t address, int device, unsigned flags);
    // True if mappings that somebody may access cover the range without a gap.
    bool covers(std::uint64_t address, std::uint64_t size_bytes) const;

    // One handle more of the memory; true if it had none.
    bool retain(PhysicalMemory& memory);
    // One handle less. is_last: it has none any more; is_gone: nor is it mapped.
    void release(PhysicalMemory& memory, bool* is_last, bool* is_gone);

  private:
    using Mappings = std::map<std::uint64_t, VirtualMapping>;
    Mappings::const_iterator at(std::uint64_t address) const;

    std::atomic<bool> is_used_{false};
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> reservations_;  // address -> size
    Mappings mappings_;
};

}  // namespace weft::shim
