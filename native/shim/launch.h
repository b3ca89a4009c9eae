// What launches and kernel nodes of graphs have in common.
#pragma once

#include "shim/objects.h"

namespace weft::shim {

// What the manual makes a synchronous error of a launch.
CUresult check_launch_shape(const Function& function, const Device& device, const CUlaunchConfig& config);

}  // namespace weft::shim
