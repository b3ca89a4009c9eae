// Launches. The path of each <<<>>>: a look at the current context, one look-up, one driver call.
#include "cudart/entry.h"
#include "cudart/launch.h"
#include "cudart/registry.h"

namespace weft::cudart {
namespace {

int attribute_of(CUdevice device, CUdevice_attribute attribute) {
    int value = 0;
    (void)driver().cuDeviceGetAttribute(&value, attribute, device);
    return value;
}

bool exceeds(unsigned value, CUdevice device, CUdevice_attribute limit) {
    return value == 0 || value > static_cast<unsigned>(attribute_of(device, limit));
}

// The driver calls everything wrong with a launch an invalid value; the runtime tells shapes that no device could run
// apart.
cudaError_t explain_failure(CUresult result, CUfunction function, dim3 grid, dim3 block) {
    CUdevice device;
    if (result != CUDA_ERROR_INVALID_VALUE || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return to_error(result);
    int most = 0;
    (void)driver().cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    const unsigned long long threads = 1ull * block.x * block.y * block.z;
    const bool bad_block =
        exceeds(block.x, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
        exceeds(block.y, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
        exceeds(block.z, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
        threads > static_cast<unsigned>(attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    const bool bad_grid = exceeds(grid.x, device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
                          exceeds(grid.y, device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
                          exceeds(grid.z, device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    if (bad_block || bad_grid) return cudaErrorInvalidConfiguration;
    return most > 0 && threads > static_cast<unsigned>(most) ? cudaErrorLaunchOutOfResources : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_kernel(const void* kernel, const CallConfiguration& with, void** arguments) {
    WEFT_TRY(enter());
    CUfunction function;
    WEFT_TRY(resolve_function(kernel, &function));
    const CUresult result = driver().cuLaunchKernel(
        function, with.grid.x, with.grid.y, with.grid.z, with.block.x, with.block.y, with.block.z,
        static_cast<unsigned>(with.shared_bytes), with.stream, arguments, nullptr);
    return result == CUDA_SUCCESS ? cudaSuccess : explain_failure(result, function, with.grid, with.block);
}

namespace api {

cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
    return launch_kernel(func, {grid, block, shared_bytes, stream}, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t stream) {
    WEFT_TRY(enter());
    CUfunction function;
    WEFT_TRY(resolve_function(func, &function));
    const CUresult result =
        driver().cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                           static_cast<unsigned>(shared_bytes), stream, arguments);
    return result == CUDA_SUCCESS ? cudaSuccess : explain_failure(result, function, grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** arguments,
                                CUstream default_stream) {
    if (config == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUfunction function;
    WEFT_TRY(resolve_function(func, &function));
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
    CUlaunchConfig mine{};
    mine.gridDimX = config->gridDim.x;
    mine.gridDimY = config->gridDim.y;
    mine.gridDimZ = config->gridDim.z;
    mine.blockDimX = config->blockDim.x;
    mine.blockDimY = config->blockDim.y;
    mine.blockDimZ = config->blockDim.z;
    mine.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    mine.hStream = config->stream != nullptr ? config->stream : default_stream;
    mine.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
    mine.numAttrs = config->numAttrs;
    const CUresult result = driver().cuLaunchKernelEx(&mine, function, arguments, nullptr);
    return result == CUDA_SUCCESS ? cudaSuccess : explain_failure(result, function, config->gridDim, config->blockDim);
}

}  // namespace api
}  // namespace weft::cudart
