// Device attributes that are different when the device is not in this machine: features that need shared memory between
// program and GPU, or that the shim does not forward yet. One table; everything else is the GPU's own value.
#pragma once

#include "gen/cuda_abi.h"

namespace weft::shim {

int remote_attribute(CUdevice_attribute attribute, int native_value);

}  // namespace weft::shim
