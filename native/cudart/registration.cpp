// What nvcc's registration code and launch stubs call (crt/host_runtime.h of the toolkit). Nothing here starts the
// runtime: a program with kernels that makes no CUDA call must not need a GPU.
#include <cstdio>

#include "cudart/entry.h"
#include "cudart/launch.h"
#include "cudart/registry.h"

using namespace weft::cudart;

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

// The handle is the program's for what follows; it never looks into it.
WEFT_EXPORT void** __cudaRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(add_binary(wrapper)); }
WEFT_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
WEFT_EXPORT void __cudaUnregisterFatBinary(void** handle) {
    if (handle != nullptr) remove_binary(reinterpret_cast<FatBinary*>(handle));
}

WEFT_EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                                        uint3*, dim3*, dim3*, int*) {
    add_kernel(reinterpret_cast<FatBinary*>(handle), host_function, name);
}

WEFT_EXPORT void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, std::size_t size,
                                   int, int) {
    add_variable(reinterpret_cast<FatBinary*>(handle), host_variable, {nullptr, name, size, nullptr});
}

// The program reaches a managed variable through a pointer; nvcc makes it call __cudaInitModule before the first use.
WEFT_EXPORT void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* name, int,
                                          std::size_t size, int, int) {
    add_variable(reinterpret_cast<FatBinary*>(handle), host_pointer, {nullptr, name, size, host_pointer});
}

WEFT_EXPORT char __cudaInitModule(void** handle) {
    CUlibrary library;
    cudaError_t error = enter();
    if (error == cudaSuccess) error = load_binary(*reinterpret_cast<FatBinary*>(handle), &library);
    (void)finish(error);
    return 1;
}

// Variables of the host that device code may reach, and tables of functions: for devices that address host memory.
WEFT_EXPORT void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {
    (void)unsupported("__cudaRegisterHostVar");
}
WEFT_EXPORT void __cudaRegisterUnifiedTable(void**, void*) { (void)unsupported("__cudaRegisterUnifiedTable"); }

WEFT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream stream) {
    if (t_state.configurations == ThreadState::kMaxConfigurations) return 1;
    t_state.stack[t_state.configurations++] = {grid, block, shared_bytes, stream};
    return 0;
}

WEFT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
    if (t_state.configurations == 0) return finish(cudaErrorMissingConfiguration);
    const CallConfiguration& top = t_state.stack[--t_state.configurations];
    *grid = top.grid;
    *block = top.block;
    *shared_bytes = top.shared_bytes;
    *static_cast<CUstream*>(stream) = top.stream;
    return cudaSuccess;
}

WEFT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host_function) {
    Kernel* kernel = find_kernel(host_function);
    *handle = reinterpret_cast<cudaKernel_t>(kernel);
    return kernel != nullptr ? cudaSuccess : finish(cudaErrorInvalidDeviceFunction);
}

WEFT_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                           std::size_t shared_bytes, CUstream stream) {
    return finish(launch_kernel(kernel, {grid, block, shared_bytes, stream}, arguments));
}

WEFT_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                std::size_t shared_bytes, CUstream stream) {
    return finish(launch_kernel(kernel, {grid, block, shared_bytes, thread_stream(stream)}, arguments));
}

WEFT_EXPORT cudaError_t cudaProfilerStart() {
    if (const cudaError_t failed = enter(); failed != cudaSuccess) return finish(failed);
    return finish(driver().cuProfilerStart());
}

WEFT_EXPORT cudaError_t cudaProfilerStop() {
    if (const cudaError_t failed = enter(); failed != cudaSuccess) return finish(failed);
    return finish(driver().cuProfilerStop());
}
