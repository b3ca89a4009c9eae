#include "cudart/state.h"

#include <mutex>

#include "cudart/entry.h"

namespace weft::cudart {

thread_local ThreadState t_state;
std::atomic<std::uint32_t> g_epoch{1};

namespace {

struct Primary {
    CUcontext context;
    bool retained;
};

// Constant-initialised and never destroyed: programs call the runtime from their exit handlers.
std::mutex g_mutex;
Primary g_primaries[kMaxDevices];
int g_device_count = 0;

std::once_flag& start_flag() {
    static std::once_flag flag;
    return flag;
}
cudaError_t g_started = cudaErrorInitializationError;

cudaError_t start() {
    if (!load_driver()) return cudaErrorInsufficientDriver;
    WEFT_TRY(driver().cuInit(0));
    int count = 0;
    WEFT_TRY(driver().cuDeviceGetCount(&count));
    if (count == 0) return cudaErrorNoDevice;
    g_device_count = count < kMaxDevices ? count : kMaxDevices;
    return cudaSuccess;
}

// Under g_mutex. The device of a context that we hold or held; -1 if it is none of them.
int device_of(CUcontext context) {
    for (int device = 0; device < g_device_count; ++device)
        if (g_primaries[device].context == context) return device;
    return -1;
}

cudaError_t retain(int device, CUcontext* context) {
    Primary& primary = g_primaries[device];
    if (!primary.retained) {
        WEFT_TRY(driver().cuDevicePrimaryCtxRetain(&primary.context, device));
        primary.retained = true;
    }
    *context = primary.context;
    return cudaSuccess;
}

cudaError_t enter_slowly() {
    const std::uint32_t epoch = g_epoch.load(std::memory_order_acquire);
    CUcontext current = nullptr;
    WEFT_TRY(driver().cuCtxGetCurrent(&current));
    if (current == nullptr) return use_device(t_state.device);
    std::lock_guard lock(g_mutex);
    const int device = device_of(current);
    // A primary context that a reset ended comes back to life when it is used again.
    if (device >= 0 && !g_primaries[device].retained) {
        WEFT_TRY(retain(device, &current));
        WEFT_TRY(driver().cuCtxSetCurrent(current));
    }
    t_state.known = current;
    t_state.known_device = device;
    t_state.epoch = epoch;
    return cudaSuccess;
}

}  // namespace

int device_count() { return g_device_count; }

cudaError_t enter_driver() {
    if (__builtin_expect(t_state.epoch != 0, 1)) return cudaSuccess;
    std::call_once(start_flag(), [] { g_started = start(); });
    return g_started;
}

cudaError_t enter() {
    if (__builtin_expect(t_state.epoch == g_epoch.load(std::memory_order_acquire), 1)) {
        CUcontext current = nullptr;
        if (driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == t_state.known) return cudaSuccess;
    }
    if (const cudaError_t failed = enter_driver(); failed != cudaSuccess) return failed;
    return enter_slowly();
}

cudaError_t use_device(int device) {
    const std::uint32_t epoch = g_epoch.load(std::memory_order_acquire);
    std::lock_guard lock(g_mutex);
    CUcontext context = nullptr;
    WEFT_TRY(retain(device, &context));
    WEFT_TRY(driver().cuCtxSetCurrent(context));
    t_state.known = context;
    t_state.known_device = device;
    t_state.epoch = epoch;
    return cudaSuccess;
}

cudaError_t find_current_device(int* device) {
    CUcontext current = nullptr;
    if (driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
        *device = t_state.device;
        return cudaSuccess;
    }
    if (current == t_state.known && t_state.known_device >= 0) {
        *device = t_state.known_device;
        return cudaSuccess;
    }
    CUdevice found = 0;
    // After a reset the context is still current, but does not answer any more.
    *device = driver().cuCtxGetDevice(&found) == CUDA_SUCCESS ? found : t_state.device;
    return cudaSuccess;
}

cudaError_t reset_device(int device) {
    std::lock_guard lock(g_mutex);
    WEFT_TRY(driver().cuDevicePrimaryCtxReset_v2(device));
    g_primaries[device].retained = false;
    g_epoch.fetch_add(1, std::memory_order_acq_rel);
    return cudaSuccess;
}

cudaError_t primary_context(int device, CUcontext* context) {
    std::lock_guard lock(g_mutex);
    return retain(device, context);
}

}  // namespace weft::cudart
