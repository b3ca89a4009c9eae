// Pointer attributes, from the shim's own tables: device memory of the window, globals of modules, page-locked host
// memory.
#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

struct Pointed {
    std::optional<DeviceRange> device;
    std::optional<HostRange> host;
    std::optional<UnifiedRange> unified;  // then `device` is set, too
    bool is_host() const { return unified ? !unified->is_managed : host.has_value(); }
    Context* context = nullptr;
};

Pointed look_up(CUdeviceptr address) {
    Pointed pointed;
    Runtime& runtime = *Runtime::get();
    pointed.device = find_device_range(address);
    pointed.unified = runtime.unified().find(address);
    if (!pointed.device) pointed.host = runtime.host_memory().find(reinterpret_cast<const void*>(address));
    const std::uint32_t number = pointed.device ? pointed.device->context : pointed.host ? pointed.host->context : 0;
    if (const auto context = runtime.context_by_number(number)) pointed.context = context.get();
    return pointed;
}

template <typename T>
CUresult put(void* data, T value) {
    *static_cast<T*>(data) = value;
    return CUDA_SUCCESS;
}

CUresult answer(const Pointed& pointed, CUpointer_attribute attribute, CUdeviceptr address, void* data) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return put<CUcontext>(
                data, pointed.context != nullptr ? reinterpret_cast<CUcontext>(pointed.context->handle) : nullptr);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return put<unsigned>(data, pointed.is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return pointed.device ? put<CUdeviceptr>(data, address) : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return pointed.host || pointed.unified ? put<void*>(data, reinterpret_cast<void*>(address))
                                                   : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return put<unsigned long long>(data, pointed.device ? pointed.device->address : pointed.host->address);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return put<unsigned>(data, pointed.unified && pointed.unified->is_managed ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
            if (pointed.device) return put<int>(data, pointed.device->device->ordinal);
            return put<int>(data, pointed.context != nullptr ? pointed.context->device->ordinal : 0);
        }
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return put<CUdeviceptr>(data, pointed.device ? pointed.device->address : pointed.host->address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return put<std::size_t>(data, pointed.unified  ? pointed.unified->size_bytes
                                          : pointed.device ? pointed.device->size_bytes
                                                           : pointed.host->size_bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED: return put<unsigned>(data, 1);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put<unsigned long long>(data, 0);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put<void*>(data, nullptr);
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    const Pointed pointed = look_up(address);
    if (!pointed.device && !pointed.host) return CUDA_ERROR_INVALID_VALUE;
    return answer(pointed, attribute, address, data);
}

// Unlike the call for one attribute this one succeeds for addresses that CUDA does not know, with neutral values.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
    if (attributes == nullptr || data == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const Pointed pointed = look_up(address);
    for (unsigned int i = 0; i < count; ++i) {
        if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if ((pointed.device || pointed.host) && answer(pointed, attributes[i], address, data[i]) == CUDA_SUCCESS)
            continue;
        switch (attributes[i]) {
            case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            case CU_POINTER_ATTRIBUTE_MAPPED:
            case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: (void)put<unsigned>(data[i], 0); break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: (void)put<int>(data[i], -2); break;
            case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_NOT_SUPPORTED;
            default: (void)put<void*>(data[i], nullptr); break;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return find_device_range(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace weft::shim::api
