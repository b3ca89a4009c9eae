// Attributes of functions, and what follows from them. Shared memory limits are those of the attributes in
// attributes.cpp.
#include <algorithm>

#include "swgpu/driver/driver.h"
#include "swgpu/driver/module.h"

namespace weft::swdriver {
namespace {

constexpr int kRegistersPerBlock = 65536;
constexpr int kMaxThreads = 1024;

int device_attribute(CUdevice_attribute id) {
    int value = 0;
    driver().devices[0]->attribute(id, &value);
    return value;
}

}  // namespace

int max_threads(const ptx::FunctionInfo& info) {
    const std::uint32_t required =
        info.required_block[0] * std::max(1u, info.required_block[1]) * std::max(1u, info.required_block[2]);
    if (required != 0) return static_cast<int>(std::min<std::uint32_t>(required, kMaxThreads));
    return info.max_threads != 0 ? static_cast<int>(std::min<std::uint32_t>(info.max_threads, kMaxThreads))
                                 : kMaxThreads;
}

// The engine's estimate, cut to what lets a block of the largest size be launched, as a compiler would.
int registers(const ptx::FunctionInfo& info) {
    const int fits = std::min(255, kRegistersPerBlock / ((max_threads(info) + 31) / 32 * 32));
    return std::clamp(static_cast<int>(info.register_count), 1, fits);
}

int max_dynamic_shared(const ptx::FunctionInfo& info, const FunctionSettings& settings) {
    const int set = settings.max_dynamic_shared.load(std::memory_order_relaxed);
    if (set >= 0) return set;
    return std::max(0, device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) -
                           static_cast<int>(info.static_shared_bytes));
}

CUresult get_attribute(const ptx::FunctionInfo& info, const FunctionSettings& settings, int capability,
                       CUfunction_attribute attribute, int* value) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = max_threads(info); break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.static_shared_bytes); break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(info.const_bytes); break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.local_bytes_per_thread); break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = registers(info); break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = static_cast<int>(info.target_sm); break;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = capability; break;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = max_dynamic_shared(info, settings); break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = settings.preferred_carveout.load(); break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = settings.cluster_dimension[0].load(); break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = settings.cluster_dimension[1].load(); break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = settings.cluster_dimension[2].load(); break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = settings.non_portable_cluster.load(); break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = settings.cluster_policy.load(); break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult set_attribute(const ptx::FunctionInfo& info, FunctionSettings& settings, CUfunction_attribute attribute,
                       int value) {
    const int shared_limit = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
                             static_cast<int>(info.static_shared_bytes);
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            if (value < 0 || value > shared_limit) return CUDA_ERROR_INVALID_VALUE;
            settings.max_dynamic_shared.store(value);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
            settings.preferred_carveout.store(value);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
            if (value != 0 && value != 1) return CUDA_ERROR_INVALID_VALUE;  // no clusters here
            settings.cluster_dimension[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH].store(value);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            settings.non_portable_cluster.store(value != 0);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            settings.cluster_policy.store(value);
            return CUDA_SUCCESS;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult param_info(const ptx::FunctionInfo& info, size_t index, size_t* offset, size_t* size) {
    if (index >= info.parameters.size() || offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *offset = info.parameters[index].offset_bytes;
    if (size != nullptr) *size = info.parameters[index].size_bytes;
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver
