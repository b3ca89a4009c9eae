// Devices and contexts as the runtime sees them: the thread's device, the primary contexts it holds, resets.
#pragma once

#include <atomic>
#include <cstdint>

#include "cudart/abi.h"

namespace weft::cudart {

inline constexpr int kMaxDevices = 64;

struct CallConfiguration {
    dim3 grid, block;
    std::size_t shared_bytes;
    CUstream stream;
};

struct ThreadState {
    static constexpr int kMaxConfigurations = 16;

    cudaError_t last_error;
    int device;           // the one chosen; meaningful while no context is current
    CUcontext known;      // found usable during `epoch`
    int known_device;     // the device whose primary context it is; -1: the program's own context
    std::uint32_t epoch;  // 0: nothing is known yet
    int configurations;
    CallConfiguration stack[kMaxConfigurations];
};

extern thread_local ThreadState t_state;
// Rises with each reset of a device: what was known about contexts is void. Starts at 1.
extern std::atomic<std::uint32_t> g_epoch;

int device_count();  // after enter_driver()
// Makes the device's primary context current in the calling thread.
cudaError_t use_device(int device);
// The device of the current context, else the one that the thread chose.
cudaError_t find_current_device(int* device);
// Ends the primary context of the device.
cudaError_t reset_device(int device);
// The primary context of another device, made if need be. It does not become current.
cudaError_t primary_context(int device, CUcontext* context);

}  // namespace weft::cudart
