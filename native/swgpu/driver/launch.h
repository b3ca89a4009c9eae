// The one place where the two drivers differ: the software GPU hands a checked launch to the engine and the scheduler
// (launch.cpp), the null driver only counts it (native/driver/null). Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstdint>
#include <span>

#include "swgpu/driver/driver.h"
#include "swgpu/driver/module.h"

namespace weft::swdriver {

struct LaunchRequest {
    const CUlaunchConfig& config;  // dimensions and shared memory, checked
    Function& function;
    Stream& stream;
    bool cooperative = false;
    std::span<const std::uint8_t> parameters = {};  // packed
    std::uint64_t grid_id = 0;
};

// What the manual makes a synchronous error of a launch.
CUresult check_dimensions(const CUlaunchConfig& config, const Function& function, const FunctionSettings& settings);

CUresult start_launch(const LaunchRequest& request);

}  // namespace weft::swdriver
