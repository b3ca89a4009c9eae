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
    if (const auto mapping = runtime.virtual_memory.find(address))
        return DeviceRange{mapping->address, mapping->memory->size_bytes, mapping->memory->device, 0};
    return runtime.find_global(address);
}

bool is_device_range(CUdeviceptr address, std::uint64_t size_bytes) {
    Runtime& runtime = *Runtime::get();
    if (runtime.virtual_memory.is_used() && runtime.device_of(address) == nullptr &&
        runtime.virtual_memory.find(address))
        return runtime.virtual_memory.covers(address, size_bytes);
    const auto range = find_device_range(address);
    return range && size_bytes <= range->size_bytes - (address - range->address);
}

}  // namespace weft::shim
