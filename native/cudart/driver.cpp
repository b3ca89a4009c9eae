#include "cudart/driver.h"

#include <dlfcn.h>

namespace weft::cudart {

DriverCalls g_driver;

namespace {

// Takes whatever it is called with: the caller cleans up in the C calling convention.
CUresult missing_call() { return CUDA_ERROR_NOT_SUPPORTED; }

template <typename Function>
bool find(void* library, const char* name, Function* function) {
    void* address = dlsym(library, name);
    *function = reinterpret_cast<Function>(address != nullptr ? address : reinterpret_cast<void*>(&missing_call));
    return address != nullptr;
}

}  // namespace

bool load_driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    bool usable = true;
#define WEFT_DRIVER_FIND(name) \
    if (!find(library, #name, &g_driver.name)) usable = usable && !is_required(#name);
    constexpr auto is_required = [](const char* name) {
        return __builtin_strcmp(name, "cuInit") == 0 || __builtin_strcmp(name, "cuDevicePrimaryCtxRetain") == 0;
    };
    WEFT_DRIVER_CALLS(WEFT_DRIVER_FIND)
#undef WEFT_DRIVER_FIND
    return usable;
}

}  // namespace weft::cudart
