// cudaDeviceProp from the driver's attributes.
#pragma once

#include <cstddef>

#include "cudart/abi.h"

namespace weft::cudart {

cudaError_t read_properties(int device, cudaDeviceProp* properties);

#if WEFT_CUDART_MAJOR == 12
// The struct of CUDA 11 ended with reservedSharedMemPerBlock; what followed was added in 12.0.
inline constexpr std::size_t kOldPropertiesBytes = offsetof(cudaDeviceProp, hostRegisterSupported);
#endif

}  // namespace weft::cudart
