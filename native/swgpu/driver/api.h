// What every file of exported calls needs. The calls follow the CUDA driver API manual; the groups are one file each
// (api_*.cpp). Design note: docs/design/software-gpu-driver.md.
#pragma once

#include "gen/cuda_abi.h"
#include "swgpu/driver/driver.h"

#define WEFT_API extern "C" __attribute__((visibility("default")))

// Most calls begin so: `entry` holds the current context, which is alive and without a sticky error.
#define WEFT_ENTER(entry)        \
    const Entry entry = enter(); \
    if (entry.error != CUDA_SUCCESS) return entry.error
#define WEFT_TRY(expression) \
    if (const CUresult weft_result = (expression); weft_result != CUDA_SUCCESS) return weft_result

namespace weft::swdriver {

// True in the null driver: every operation of an idle stream is executed by its caller, whatever its size, and kernels
// not at all.
extern const bool kImmediate;

}  // namespace weft::swdriver
