// Kernels, variables and occupancy: what can be asked about the program's own device code.
#include "cudart/entry.h"
#include "cudart/registry.h"

namespace weft::cudart::api {
namespace {

cudaError_t enter_with(const void* func, CUfunction* function) {
    WEFT_TRY(enter());
    return resolve_function(func, function);
}

int attribute_of(CUfunction function, CUfunction_attribute attribute) {
    int value = 0;
    (void)driver().cuFuncGetAttribute(&value, attribute, function);
    return value;
}

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
    CUlaunchConfig out{};
    out.gridDimX = config.gridDim.x;
    out.gridDimY = config.gridDim.y;
    out.gridDimZ = config.gridDim.z;
    out.blockDimX = config.blockDim.x;
    out.blockDimY = config.blockDim.y;
    out.blockDimZ = config.blockDim.z;
    out.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    out.hStream = config.stream;
    out.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
    out.numAttrs = config.numAttrs;
    return out;
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    const auto read = [&](CUfunction_attribute attribute) { return attribute_of(function, attribute); };
    const auto size = [&](CUfunction_attribute attribute) { return static_cast<std::size_t>(read(attribute)); };
    *attributes = {};
    attributes->sharedSizeBytes = size(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->constSizeBytes = size(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attributes->localSizeBytes = size(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes->maxThreadsPerBlock = read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = read(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = read(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = read(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = read(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = read(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = read(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes->clusterDimMustBeSet = read(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    attributes->requiredClusterWidth = read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    attributes->requiredClusterHeight = read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    attributes->requiredClusterDepth = read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    attributes->clusterSchedulingPolicyPreference = read(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    attributes->nonPortableClusterSizeAllowed = read(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuFuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value));
}

cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuFuncSetCacheConfig(function, static_cast<CUfunc_cache>(config)));
}

cudaError_t cudaFuncSetSharedMemConfig(const void* func, cudaSharedMemConfig config) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuFuncSetSharedMemConfig(function, static_cast<CUsharedconfig>(config)));
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
    if (name == nullptr) return cudaErrorInvalidValue;
    if (const Kernel* kernel = find_kernel(func)) return *name = kernel->name, cudaSuccess;
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuFuncGetName(name, function));
}

cudaError_t cudaFuncGetParamInfo(const void* func, std::size_t index, std::size_t* offset, std::size_t* size) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuFuncGetParamInfo(function, index, offset, size));
}

#if WEFT_CUDART_MAJOR == 13
cudaError_t cudaFuncGetParamCount(const void* func, std::size_t* count) {
    if (count == nullptr) return cudaErrorInvalidValue;
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    std::size_t offset;
    for (*count = 0; driver().cuFuncGetParamInfo(function, *count, &offset, nullptr) == CUDA_SUCCESS;) ++*count;
    return cudaSuccess;
}
#endif

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
    return function != nullptr ? enter_with(symbol, function) : cudaErrorInvalidValue;
}

cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* host_function) {
    if (handle == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    Kernel* kernel = find_kernel(host_function);
    return kernel != nullptr ? kernel_handle(*kernel, handle) : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    WEFT_TRY(enter());
    return to_error(driver().cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device));
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    if (address == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    const Variable* variable = find_variable(symbol);
    if (variable == nullptr) return cudaErrorInvalidSymbol;
    CUdeviceptr found = 0;
    std::size_t size_bytes = 0;
    WEFT_TRY(variable_address(*variable, &found, &size_bytes));
    *address = to_pointer(found);
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(std::size_t* size, const void* symbol) {
    if (size == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    const Variable* variable = find_variable(symbol);
    if (variable == nullptr) return cudaErrorInvalidSymbol;
    *size = variable->size_bytes;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* func, int block_size,
                                                                   std::size_t shared_bytes, unsigned int flags) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                                  shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func, int block_size,
                                                          std::size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block_size, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* func, int blocks,
                                                      int block_size) {
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    return to_error(driver().cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block_size));
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* func, const cudaLaunchConfig_t* config) {
    if (config == nullptr) return cudaErrorInvalidValue;
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    const CUlaunchConfig mine = driver_config(*config);
    return to_error(driver().cuOccupancyMaxActiveClusters(clusters, function, &mine));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* func, const cudaLaunchConfig_t* config) {
    if (config == nullptr) return cudaErrorInvalidValue;
    CUfunction function;
    WEFT_TRY(enter_with(func, &function));
    const CUlaunchConfig mine = driver_config(*config);
    return to_error(driver().cuOccupancyMaxPotentialClusterSize(size, function, &mine));
}

}  // namespace weft::cudart::api
