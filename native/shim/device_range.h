// Which device memory an address belongs to: an allocation in the window, or a global of a module.
#pragma once

#include <cstdint>
#include <optional>

#include "gen/cuda_abi.h"
#include "shim/objects.h"

namespace weft::shim {

struct DeviceRange {
    CUdeviceptr address = 0;
    std::uint64_t size_bytes = 0;
    Device* device = nullptr;
    std::uint32_t context = 0;
};

std::optional<DeviceRange> find_device_range(CUdeviceptr address);
// True if [address, address + size) lies in one piece of device memory. Errors of copies and memsets are found by this,
// locally.
bool is_device_range(CUdeviceptr address, std::uint64_t size_bytes);

}  // namespace weft::shim
