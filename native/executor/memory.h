// Device memory of a session: the address window of each device, the extents mapped into it, and the cap of the lease.
// Accounting is on the loop's thread; the driver's long calls (map, unmap) are made by whoever asks, on the helper
// thread. Design note: docs/design/executor.md, docs/design/call-path.md "Device memory".
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "executor/lease_usage.h"
#include "gen/driver_table.h"

namespace weft::executor {

// Counts bytes of one device against the cap of the lease; together with the lease's other sessions if there is a
// shared page.
class MemoryAccount {
  public:
    explicit MemoryAccount(std::uint64_t cap_bytes) : cap_bytes_(cap_bytes) {}
    // The page outlives the account. Null: this session has the lease for itself.
    void share(LeaseUsage* usage, std::size_t device) { usage_ = usage, device_ = device; }
    // False: it would pass the cap; nothing was counted.
    bool take(std::uint64_t bytes);
    void give(std::uint64_t bytes);
    std::uint64_t free_bytes() const;
    std::uint64_t used_bytes() const { return used_bytes_; }
    std::uint64_t peak_bytes() const { return peak_bytes_; }

  private:
    std::uint64_t cap_bytes_;
    std::uint64_t used_bytes_ = 0;
    std::uint64_t peak_bytes_ = 0;
    LeaseUsage* usage_ = nullptr;
    std::size_t device_ = 0;
};

// The window of one device and the extents that are mapped, being mapped or being unmapped in it. Pure.
class ExtentMap {
  public:
    void set_window(std::uint64_t base, std::uint64_t size_bytes) { base_ = base, size_bytes_ = size_bytes; }
    // What is wrong with a proposed extent: nullptr if nothing.
    const char* check(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t granularity) const;
    void add(std::uint64_t address, std::uint64_t size_bytes, CUmemGenericAllocationHandle handle) {
        extents_[address] = {size_bytes, handle};
    }
    void set_handle(std::uint64_t address, CUmemGenericAllocationHandle handle) { extents_[address].handle = handle; }
    // The handle of exactly this extent, which leaves the map; 0 if there is none.
    bool remove(std::uint64_t address, std::uint64_t size_bytes, CUmemGenericAllocationHandle* handle);
    std::uint64_t base() const { return base_; }
    std::uint64_t size_bytes() const { return size_bytes_; }
    bool has_window() const { return size_bytes_ != 0; }
    std::size_t extent_count() const { return extents_.size(); }
    struct Extent {
        std::uint64_t size_bytes;
        CUmemGenericAllocationHandle handle;
    };
    const std::map<std::uint64_t, Extent>& extents() const { return extents_; }

  private:
    std::uint64_t base_ = 0;
    std::uint64_t size_bytes_ = 0;
    std::map<std::uint64_t, Extent> extents_;
};

// Reserves the windows of `count` devices at base, base + stride, ...; all or none. False: an address is taken.
bool reserve_windows(const driver::DriverTable& driver, std::size_t count, std::uint64_t base,
                     std::uint64_t stride_bytes);
void free_windows(const driver::DriverTable& driver, std::size_t count, std::uint64_t base, std::uint64_t stride_bytes);

// Backs an extent with memory of the device / takes it away. Safe on any thread.
CUresult map_extent(const driver::DriverTable& driver, CUdevice device, std::uint64_t address, std::uint64_t size_bytes,
                    CUmemGenericAllocationHandle* handle);
CUresult unmap_extent(const driver::DriverTable& driver, std::uint64_t address, std::uint64_t size_bytes,
                      CUmemGenericAllocationHandle handle);

// Granularity of MEM_MAP on the device; 2 MiB at least.
std::uint64_t mapping_granularity(const driver::DriverTable& driver, CUdevice device);

}  // namespace weft::executor
