#pragma once

#include "cudart/state.h"

namespace weft::cudart {

// kernel: a host function or a handle of one. arguments: one pointer per parameter.
cudaError_t launch_kernel(const void* kernel, const CallConfiguration& configuration, void** arguments);

}  // namespace weft::cudart
