// Page-locked host memory. Over shm it lies in segments that the executor maps as well; over tcp it is ordinary memory
// that the shim knows about.
#include "gen/shim_api.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

constexpr unsigned kAllocFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

// Memory of cuMemHostAlloc that kernels can reach.
std::optional<UnifiedRange> find_mapped(const void* address) {
    auto range = Runtime::get()->unified().find(reinterpret_cast<CUdeviceptr>(address));
    return range && !range->is_managed ? range : std::nullopt;
}

}  // namespace

CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if ((flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) == 0)
        return Runtime::get()->host_memory().allocate(bytes, flags, context->number, address);
    CUdeviceptr made = 0;
    const CUresult result = Runtime::get()->unified().allocate(*context, bytes, false, flags, &made);
    if (result == CUDA_SUCCESS) *address = reinterpret_cast<void*>(made);
    return result;
}

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }

CUresult cuMemFreeHost(void* address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Runtime& runtime = *Runtime::get();
    if (const auto mapped = find_mapped(address)) {
        if (mapped->address != reinterpret_cast<CUdeviceptr>(address)) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult waited = runtime.wait_for_everything(); waited != CUDA_SUCCESS) return waited;
        return runtime.unified().free(mapped->address, false);
    }
    const auto range = runtime.host_memory().find(address);
    if (!range || range->registered || range->address != reinterpret_cast<std::uint64_t>(address))
        return CUDA_ERROR_INVALID_VALUE;
    // Copies in flight may still read or write it.
    if (const CUresult waited = runtime.wait_for_everything(); waited != CUDA_SUCCESS) return waited;
    return runtime.host_memory().free(address);
}

CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if ((flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    return Runtime::get()->host_memory().add(address, bytes, flags, context->number);
}

CUresult cuMemHostUnregister(void* address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Runtime& runtime = *Runtime::get();
    if (!runtime.host_memory().find(address)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (const CUresult waited = runtime.wait_for_everything(); waited != CUDA_SUCCESS) return waited;
    return runtime.host_memory().remove(address);
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (const auto mapped = find_mapped(address)) return *flags = mapped->flags, CUDA_SUCCESS;
    const auto range = Runtime::get()->host_memory().find(address);
    if (!range || range->registered) return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_address, void* address, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *device_address = 0;
    if (find_mapped(address)) return *device_address = reinterpret_cast<CUdeviceptr>(address), CUDA_SUCCESS;
    if (!Runtime::get()->host_memory().find(address)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;  // only memory that was made with CU_MEMHOSTALLOC_DEVICEMAP has a shadow
}

}  // namespace weft::shim::api
