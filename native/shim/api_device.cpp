// Devices: everything is answered from the description that came with HELLO.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gen/shim_api.h"
#include "shim/remote_attributes.h"
#include "shim/runtime.h"

namespace weft::shim::api {
namespace {

CUresult find_device(CUdevice ordinal, Device** device) {
    *device = Runtime::get()->device(ordinal);
    return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
    *count = static_cast<int>(Runtime::get()->devices().size());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    Device* found;
    if (const CUresult result = find_device(ordinal, &found); result != CUDA_SUCCESS) return result;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<std::size_t>(size), "%s", device->info.name.c_str());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    static_assert(sizeof(CUuuid) == 16);
    std::memcpy(uuid, device->info.uuid.data(), sizeof(CUuuid));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) { return cuDeviceGetUuid(uuid, ordinal); }

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    *bytes = device->info.total_memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    const auto found = device->info.attributes.get(static_cast<std::size_t>(attribute));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *value = remote_attribute(attribute, *found);
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
    const CUresult result = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
    return result != CUDA_SUCCESS ? result
                                  : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
    int* const values[] = {
        &properties->maxThreadsPerBlock, &properties->maxThreadsDim[0],  &properties->maxThreadsDim[1],
        &properties->maxThreadsDim[2],   &properties->maxGridSize[0],    &properties->maxGridSize[1],
        &properties->maxGridSize[2],     &properties->sharedMemPerBlock, &properties->totalConstantMemory,
        &properties->SIMDWidth,          &properties->memPitch,          &properties->regsPerBlock,
        &properties->clockRate,          &properties->textureAlign};
    constexpr CUdevice_attribute kAttributes[] = {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
                                                  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                                                  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                                  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
                                                  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
                                                  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
                                                  CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                                                  CU_DEVICE_ATTRIBUTE_MAX_PITCH,
                                                  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
                                                  CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                                                  CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT};
    for (std::size_t i = 0; i < std::size(values); ++i)
        if (const CUresult result = cuDeviceGetAttribute(values[i], kAttributes[i], ordinal); result != CUDA_SUCCESS)
            return result;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(id, static_cast<std::size_t>(size), "%s", device->info.pci_bus_id.c_str());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* ordinal, const char* id) {
    for (const auto& device : Runtime::get()->devices())
        if (device->info.pci_bus_id == id) return *ordinal = device->ordinal, CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice ordinal, CUdevice peer) {
    Device *device, *other;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_device(peer, &other); result != CUDA_SUCCESS) return result;
    *can_access = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute, CUdevice ordinal, CUdevice peer) {
    return cuDeviceCanAccessPeer(value, ordinal, peer);
}

}  // namespace weft::shim::api
