// Devices: all answers are local facts.
#include <cstdio>
#include <cstring>

#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

// The device, or the error to return.
CUresult need_device(CUdevice number, const void* out, Device** device) {
    WEFT_TRY(check_ready());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = find_device(number);
    return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult copy_text(const std::string& text, char* out, int size) {
    if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(out, static_cast<std::size_t>(size), "%s", text.c_str());
    return CUDA_SUCCESS;
}

}  // namespace

WEFT_API CUresult cuDeviceGetCount(int* count) {
    WEFT_TRY(check_ready());
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver().devices.size());
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGet(CUdevice* out, int ordinal) {
    Device* device = nullptr;
    WEFT_TRY(need_device(ordinal, out, &device));
    *out = device->ordinal;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetName(char* name, int size, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, name, &device));
    return copy_text(device->name, name, size);
}

WEFT_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, uuid, &device));
    std::memcpy(uuid, device->uuid().data(), 16);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice number) { return cuDeviceGetUuid(uuid, number); }

WEFT_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, value, &device));
    return device->attribute(attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, major, &device));
    if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = device->capability_major;
    *minor = device->capability_minor;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, bytes, &device));
    *bytes = device->memory.total_bytes();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, id, &device));
    return copy_text(device->pci_bus_id(), id, size);
}

WEFT_API CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* id) {
    WEFT_TRY(check_ready());
    if (out == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, device_number = 0, function = 0;
    const bool whole = std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device_number, &function) == 4;
    if (!whole) {
        domain = function = 0;
        if (std::sscanf(id, "%x:%x.%x", &bus, &device_number, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
    }
    Device* device = bus > 0 && domain == 0 && device_number == 0 && function == 0
                         ? find_device(static_cast<int>(bus) - 1)
                         : nullptr;
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = device->ordinal;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, properties, &device));
    const auto get = [&](CUdevice_attribute id) {
        int value = 0;
        device->attribute(id, &value);
        return value;
    };
    properties->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; ++i) {
        properties->maxThreadsDim[i] = get(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
        properties->maxGridSize[i] = get(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
    }
    properties->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    properties->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    properties->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    properties->textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

// All devices of this process share one address space, so each can reach the other's memory.
WEFT_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice number, CUdevice peer_number) {
    Device* device = nullptr;
    Device* peer = nullptr;
    WEFT_TRY(need_device(number, can, &device));
    WEFT_TRY(need_device(peer_number, can, &peer));
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice number,
                                          CUdevice peer_number) {
    Device* device = nullptr;
    Device* peer = nullptr;
    WEFT_TRY(need_device(number, value, &device));
    WEFT_TRY(need_device(peer_number, value, &peer));
    if (device == peer) return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: *value = 1; return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return CUDA_SUCCESS;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

WEFT_API CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(need_device(number, supported, &device));
    *supported = 0;
    return CUDA_SUCCESS;
}
