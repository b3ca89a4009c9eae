// Managed memory: device memory is memory of this process already, so nothing moves, and hints change nothing.
#include "swgpu/driver/api.h"
#include "swgpu/driver/memory.h"

using namespace weft::swdriver;

namespace {

CUresult check_managed(CUdeviceptr address, size_t size) {
    WEFT_TRY(check_ready());
    const auto allocation = driver().space.find(address);
    if (!allocation || !allocation->managed || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return size <= allocation->end() - address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_location(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return find_device(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUmemLocation location_of(CUdevice device) {
    CUmemLocation location{};
    location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

}  // namespace

WEFT_API CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
    WEFT_ENTER(entry);
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    const auto address = allocate_device(entry.device(), *entry.context, size, MemoryKind::device, 0, true);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = *address;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t size, unsigned int flags) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = driver().space.find(address);
    if (!allocation || !allocation->managed || allocation->start != address) return CUDA_ERROR_INVALID_VALUE;
    if (size != 0 && size != allocation->size) return CUDA_ERROR_INVALID_VALUE;
    return flags == CU_MEM_ATTACH_SINGLE && handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

WEFT_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                                        CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(check_managed(address, size));
    return check_location(location);
}

WEFT_API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, size, location_of(device), 0, stream);
}

WEFT_API CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location) {
    WEFT_TRY(check_managed(address, size));
    switch (advice) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY:
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: return CUDA_SUCCESS;
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        case CU_MEM_ADVISE_SET_ACCESSED_BY:
        case CU_MEM_ADVISE_UNSET_ACCESSED_BY: return check_location(location);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(address, size, advice, location_of(device));
}
