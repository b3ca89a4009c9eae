// Launch attributes that a client may set.
#pragma once

#include "gen/cuda_abi.h"

namespace weft::executor {

inline constexpr unsigned kMaxLaunchAttributes = 64;

// Attributes made of numbers only: those with handles or pointers of the client's process mean nothing here.
bool is_allowed_attribute(CUlaunchAttributeID id);

}  // namespace weft::executor
