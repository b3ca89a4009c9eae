// Reservations, memory handles and mappings (cuMemAddressReserve, cuMemCreate, cuMemMap and relatives).
// Unmapped addresses of a reservation stay harmless to touch, so that work in flight can never crash the process.
// Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "gen/cuda_abi.h"
#include "swgpu/driver/address_space.h"
#include "swgpu/driver/device_memory.h"
#include "swgpu/driver/object.h"

namespace weft::swdriver {

// Memory without an address. Charged to its device until the last handle and the last mapping are gone. While it is
// mapped once its pages are private to that mapping; without a mapping they are parked elsewhere; a second mapping
// moves them into a memfd.
class PhysicalMemory final : public Object {
  public:
    static constexpr Kind kKind = Kind::memory;
    PhysicalMemory(DeviceMemory& memory, int device, std::uint64_t size)
        : Object(kKind), memory_(memory), device_(device), size_(size) {}
    ~PhysicalMemory() override;
    int device() const { return device_; }
    std::uint64_t size() const { return size_; }

  private:
    friend class VirtualMemory;
    DeviceMemory& memory_;
    const int device_;
    const std::uint64_t size_;
    // All below: under VirtualMemory's lock.
    unsigned handles_ = 1;  // not yet released
    unsigned mappings_ = 0;
    std::uint64_t sole_ = 0;    // address of the only mapping while pages are private
    std::uint64_t parked_ = 0;  // address of the pages while there is no mapping
    int fd_ = -1;               // memfd once shared by two mappings
};

class VirtualMemory {
  public:
    explicit VirtualMemory(AddressSpace& space) : space_(space) {}

    CUresult reserve(std::uint64_t wanted, std::uint64_t size, std::uint64_t alignment, std::uint64_t* address);
    CUresult unreserve(std::uint64_t address, std::uint64_t size);
    CUresult create(DeviceMemory& memory, int device, std::uint64_t size, CUmemGenericAllocationHandle* handle);
    CUresult release(CUmemGenericAllocationHandle handle);
    CUresult retain(std::uint64_t address, CUmemGenericAllocationHandle* handle);
    CUresult map(std::uint64_t address, std::uint64_t size, PhysicalMemory& memory);
    CUresult unmap(std::uint64_t address, std::uint64_t size);

  private:
    bool is_reserved(std::uint64_t address, std::uint64_t size) const;
    bool place(std::uint64_t address, PhysicalMemory& memory);
    bool share(PhysicalMemory& memory);
    void displace(std::uint64_t address, PhysicalMemory& memory);

    AddressSpace& space_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> reservations_;    // start -> size
    std::map<std::uint64_t, Ref<PhysicalMemory>> mappings_;  // start -> memory
};

}  // namespace weft::swdriver
