#include "shim/device_range.h"

#include "shim/runtime.h"

namespace weft::shim {

std::optional<DeviceRange> find_device_range(CUdeviceptr address) {
    Runtime& runtime = *Runtime::get();
    if (Device* device = runtime.device_of(address)) {
        const auto range = device->memory->find(address);
        if (!range) return std::nullopt;
        return DeviceRange{range->address, range->size, device, device->memory->context_of(range->address)};
    }
    return runtime.find_global(address);
}

bool is_device_range(CUdeviceptr address, std::uint64_t size_bytes) {
    const auto range = find_device_range(address);
    return range && size_bytes <= range->size_bytes - (address - range->address);
}

}  // namespace weft::shim
