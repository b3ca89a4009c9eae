// Device memory: allocation is local arithmetic in the window (device_memory.h); only growth asks the executor.
#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (graph::is_any_capturing()) [[unlikely]]
        if (const CUresult refused = graph::check_unsafe_call(); refused != CUDA_SUCCESS) return refused;
    return context->device->memory->allocate(bytes, context->number, address);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned int element) {
    if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t row = (width + 511) / 512 * 512;
    if (row < width || height > SIZE_MAX / row) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = cuMemAlloc_v2(address, row * height);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (graph::is_any_capturing()) [[unlikely]]
        if (const CUresult refused = graph::check_unsafe_call(); refused != CUDA_SUCCESS) return refused;
    if (address == 0) return CUDA_SUCCESS;
    if (Runtime::get()->unified().find(address)) return Runtime::get()->unified().free(address, true);
    Device* device = Runtime::get()->device_of(address);
    return device != nullptr ? device->memory->free(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    const DeviceMemory& memory = *context->device->memory;
    *free_bytes = memory.free_bytes();
    *total_bytes = memory.cap_bytes();
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    const auto range = find_device_range(address);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = range->address;
    if (size != nullptr) *size = range->size_bytes;
    return CUDA_SUCCESS;
}

}  // namespace weft::shim::api
