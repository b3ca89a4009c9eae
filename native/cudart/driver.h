// The driver's calls, found in libcuda.so.1 when the program first needs them. Only public calls are used.
#pragma once

#include "gen/cuda_abi.h"
#include "gen/cudart_driver_calls.h"

namespace weft::cudart {

struct DriverCalls {
#define WEFT_DRIVER_MEMBER(name) decltype(&::name) name;
    WEFT_DRIVER_CALLS(WEFT_DRIVER_MEMBER)
#undef WEFT_DRIVER_MEMBER
};

// False: there is no libcuda.so.1, or it lacks what the oldest driver has. A call that the driver lacks answers
// CUDA_ERROR_NOT_SUPPORTED, so every member may be called after a success.
bool load_driver();

extern DriverCalls g_driver;
inline const DriverCalls& driver() { return g_driver; }

}  // namespace weft::cudart
