// Functions: attributes, names, parameters, and occupancy, which follows from the attributes alone.
#include <algorithm>

#include "swgpu/driver/api.h"
#include "swgpu/driver/module.h"
#include "swgpu/driver/occupancy.h"

using namespace weft::swdriver;

namespace {

// The calls accept a CUkernel as well, whose own settings then count.
struct Target {
    Ref<Function> function;
    Ref<Kernel> kernel;
    const weft::ptx::FunctionInfo& info() const { return kernel ? kernel->info : function->info; }
    FunctionSettings& settings() const { return kernel ? kernel->settings : function->settings; }
};

CUresult need_target(CUfunction handle, const void* out, Entry* entry, Target* target) {
    *entry = enter();
    WEFT_TRY(entry->error);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    target->kernel = find<Kernel>(handle);
    if (!target->kernel) target->function = find<Function>(handle);
    return target->kernel || target->function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

WEFT_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, value, &entry, &target));
    const Device& device = entry.device();
    return get_attribute(target.info(), target.settings(), device.capability_major * 10 + device.capability_minor,
                         attribute, value);
}

WEFT_API CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, &value, &entry, &target));
    return set_attribute(target.info(), target.settings(), attribute, value);
}

WEFT_API CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, &config, &entry, &target));
    return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS
                                                                                       : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
    Entry entry;
    Target target;
    return need_target(handle, &config, &entry, &target);
}

WEFT_API CUresult cuFuncGetName(const char** name, CUfunction handle) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, name, &entry, &target));
    *name = target.info().name.c_str();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, module, &entry, &target));
    if (target.kernel) WEFT_TRY(target.kernel->function(*entry.context, &target.function));
    *module = target.function->module->handle_as<CUmodule>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, offset, &entry, &target));
    return param_info(target.info(), index, offset, size);
}

WEFT_API CUresult cuFuncGetParamCount(CUfunction handle, size_t* count) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, count, &entry, &target));
    *count = target.info().parameters.size();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, state, &entry, &target));
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuFuncLoad(CUfunction handle) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, &handle, &entry, &target));
    if (target.kernel) WEFT_TRY(target.kernel->function(*entry.context, &target.function));
    return target.function->kernel() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Occupancy.

WEFT_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int block_size,
                                                                       size_t dynamic_shared, unsigned int flags) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, blocks, &entry, &target));
    if (block_size <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
    *blocks = active_blocks(target.info(), target.settings(), block_size, dynamic_shared);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                              size_t dynamic_shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_size, dynamic_shared, 0);
}

WEFT_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block_size, CUfunction handle,
                                                            CUoccupancyB2DSize shared_of, size_t dynamic_shared,
                                                            int limit, unsigned int flags) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, min_grid, &entry, &target));
    if (block_size == nullptr || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
    const int largest = limit > 0 ? std::min(limit, max_threads(target.info())) : max_threads(target.info());
    int best_threads = 0, best_size = 0, best_blocks = 0;
    // From the largest multiple of a warp down: of equal occupancies the larger block wins.
    for (int size = (largest + 31) / 32 * 32; size > 0; size -= 32) {
        const int tried = std::min(size, largest);
        const size_t shared = shared_of != nullptr ? shared_of(tried) : dynamic_shared;
        const int blocks = active_blocks(target.info(), target.settings(), tried, shared);
        if (blocks * tried > best_threads) {
            best_threads = blocks * tried;
            best_size = tried;
            best_blocks = blocks;
        }
    }
    int processors = 0;
    entry.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors);
    *block_size = best_size;
    *min_grid = best_blocks * processors;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block_size, handle, shared_of, dynamic_shared, limit, 0);
}

WEFT_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                          int block_size) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, bytes, &entry, &target));
    if (blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = available_shared(target.info(), target.settings(), blocks);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig* config) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, size, &entry, &target));
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *size = 1;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
    Entry entry;
    Target target;
    WEFT_TRY(need_target(handle, clusters, &entry, &target));
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int processors = 0;
    entry.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors);
    const int threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
    *clusters =
        threads > 0 ? active_blocks(target.info(), target.settings(), threads, config->sharedMemBytes) * processors : 0;
    return CUDA_SUCCESS;
}
