// Virtual memory management, and Weft's own exports for an executor.
#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

CUresult check_properties(const CUmemAllocationProp* properties, Device** device) {
    WEFT_TRY(check_ready());
    if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    *device = find_device(properties->location.id);
    return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

WEFT_API CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                                CUmemAllocationGranularity_flags option) {
    Device* device = nullptr;
    WEFT_TRY(check_properties(properties, &device));
    if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = kMappingGranularity;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wanted,
                                      unsigned long long flags) {
    WEFT_TRY(check_ready());
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    WEFT_TRY(driver().virtual_memory.reserve(wanted, size, alignment, &address));
    *out = address;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    WEFT_TRY(check_ready());
    return driver().virtual_memory.unreserve(address, size);
}

WEFT_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                              unsigned long long flags) {
    Device* device = nullptr;
    WEFT_TRY(check_properties(properties, &device));
    if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver().virtual_memory.create(device->memory, device->ordinal, size, handle);
}

WEFT_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    WEFT_TRY(check_ready());
    return driver().virtual_memory.release(handle);
}

WEFT_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    WEFT_TRY(check_ready());
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver().virtual_memory.retain(reinterpret_cast<std::uint64_t>(address), handle);
}

WEFT_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                         CUmemGenericAllocationHandle handle) {
    WEFT_TRY(check_ready());
    const auto memory = find<PhysicalMemory>(reinterpret_cast<void*>(handle));
    if (properties == nullptr || !memory) return CUDA_ERROR_INVALID_VALUE;
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = memory->device();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
    WEFT_TRY(check_ready());
    const auto memory = find<PhysicalMemory>(reinterpret_cast<void*>(handle));
    if (!memory || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver().virtual_memory.map(address, size, *memory);
}

WEFT_API CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    WEFT_TRY(check_ready());
    return driver().virtual_memory.unmap(address, size);
}

WEFT_API CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
    WEFT_TRY(check_ready());
    if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    // Access is kept per mapping, not per device: the widest grant counts.
    unsigned access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    for (size_t i = 0; i < count; ++i) {
        if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
        if (find_device(descriptions[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        access |= descriptions[i].flags;
    }
    if ((access & ~static_cast<unsigned>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool writable = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver().space.set_access(address, size, access != 0, writable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    WEFT_TRY(check_ready());
    const auto mapping = driver().space.find(address);
    if (flags == nullptr || location == nullptr || !mapping || mapping->kind != MemoryKind::mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = mapping->writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : mapping->readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                 : 0;
    return CUDA_SUCCESS;
}

// Exports of Weft, for an executor.

// An allocation begins (is_alloc) or ends at this address inside mapped memory. Once a mapping has had a note, only
// noted ranges of it are accessible. CUDA_ERROR_INVALID_VALUE: not mapped, overlaps another note, or no note starts
// there.
WEFT_API CUresult weftMemoryNote(CUdeviceptr address, size_t size, int is_alloc) {
    WEFT_TRY(check_ready());
    const bool done = is_alloc != 0 ? driver().space.note(address, size) : driver().space.unnote(address);
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Where the CPU can read and write this range of device memory. The caller must know that no work in flight uses it.
WEFT_API void* weftHostAccess(CUdeviceptr address, size_t size) {
    if (driver_if_ready() == nullptr || !driver().space.accessible(address, size, true)) return nullptr;
    return reinterpret_cast<void*>(address);
}
