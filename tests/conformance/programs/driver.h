/* The driver API for the C programs here: loads libcuda.so.1 at run time and names the functions that the programs use.
 * Compiled with the system's C compiler against native/gen/cuda_abi.h; needs no CUDA installation. */
#ifndef WEFT_TESTS_DRIVER_H
#define WEFT_TESTS_DRIVER_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/cuda_abi.h"

#define WEFT_FUNCTIONS(X)                                                                                            \
    X(cuInit)                                                                                                        \
    X(cuDriverGetVersion) X(cuGetErrorName) X(cuDeviceGet) X(cuDeviceGetName) X(cuCtxCreate_v2) X(cuCtxDestroy_v2)   \
        X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemGetInfo_v2) X(cuMemHostAlloc) \
            X(cuMemFreeHost) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoD_v2) X(cuMemcpyHtoDAsync_v2)        \
                X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpy) X(cuMemsetD8_v2) X(cuMemsetD32_v2)       \
                    X(cuMemsetD32Async) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction)                 \
                        X(cuModuleGetGlobal_v2) X(cuLaunchKernel) X(cuStreamCreate) X(cuStreamDestroy_v2)            \
                            X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuEventCreate) X(cuEventDestroy_v2)        \
                                X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)

#define X(name) static __typeof__(&name) p_##name;
WEFT_FUNCTIONS(X)
#undef X

#define CHECK(call)                                                                    \
    do {                                                                               \
        CUresult check_result = (call);                                                \
        if (check_result != CUDA_SUCCESS) {                                            \
            const char* check_name = "?";                                              \
            p_cuGetErrorName(check_result, &check_name);                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, check_name); \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

#define EXPECT(condition)                                                             \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static inline void load_driver(void) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define X(name)                                    \
    *(void**)&p_##name = dlsym(library, #name);    \
    if (p_##name == NULL) {                        \
        fprintf(stderr, "%s is missing\n", #name); \
        exit(1);                                   \
    }
    WEFT_FUNCTIONS(X)
#undef X
}

#endif
