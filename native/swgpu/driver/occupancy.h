// How many blocks of a function fit a multiprocessor of the device that the attributes describe. Pure.
#pragma once

#include <cstddef>

#include "swgpu/driver/module.h"

namespace weft::swdriver {

// 0 when a block of this size cannot run at all.
int active_blocks(const ptx::FunctionInfo& info, const FunctionSettings& settings, int threads,
                  std::size_t dynamic_shared);
// Dynamic shared memory left for each of so many blocks.
std::size_t available_shared(const ptx::FunctionInfo& info, const FunctionSettings& settings, int blocks);

}  // namespace weft::swdriver
