// Managed memory, and what a program says about it. What is true of its pages is in unified_memory.h.
#include <cstring>

#include "gen/shim_api.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

// The stream of a hint, in the current context.
CUresult find_target(CUstream handle, Stream** stream) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    return find_stream(*context, handle, stream);
}

CUresult check_managed(CUdeviceptr address, std::size_t bytes) {
    const auto range = Runtime::get()->unified().find(address);
    if (!range || !range->is_managed || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return bytes <= range->size_bytes - (address - range->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool is_host(const CUmemLocation& location) {
    return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUmemLocation location_of(CUdevice device) {
    CUmemLocation location{};
    location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

CUresult check_location(const CUmemLocation& location) {
    if (is_host(location)) return CUDA_SUCCESS;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    return Runtime::get()->device(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    UnifiedMemory& unified = Runtime::get()->unified();
    const CUresult made = unified.allocate(*context, bytes, true, flags, address);
    return made == CUDA_SUCCESS ? unified.attach(*address, flags, nullptr) : made;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, std::size_t bytes, unsigned int flags) {
    Stream* stream;
    if (const CUresult result = find_target(handle, &stream); result != CUDA_SUCCESS) return result;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    const auto range = Runtime::get()->unified().find(address);
    if (!range || range->address != address || (bytes != 0 && bytes != range->size_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_MEM_ATTACH_SINGLE && handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return Runtime::get()->unified().attach(address, flags, flags == CU_MEM_ATTACH_SINGLE ? stream : nullptr);
}

// To the device there is nothing to do ahead of the work that needs it; to the host it brings the pages, so that system
// calls find them as well.
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream handle) {
    Stream* stream;
    if (const CUresult result = find_target(handle, &stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_managed(address, bytes); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_location(location); result != CUDA_SUCCESS) return result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!is_host(location)) return CUDA_SUCCESS;
    const Reply reply = submit_and_wait<wire::StreamSync>(*stream, 0, [](auto&, std::byte*) {});
    if (reply.status != CUDA_SUCCESS) return settle(*stream->context, reply.status);
    return Runtime::get()->unified().bring(address, bytes);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUmemLocation location) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    const bool has_location = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                              advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    if (has_location) {
        if (const CUresult result = check_location(location); result != CUDA_SUCCESS) return result;
    }
    return check_managed(address, bytes);
}

CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

}  // namespace weft::shim::api
