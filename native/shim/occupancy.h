// Occupancy is a matter of the real driver: asked once for each question.
#pragma once

#include <cstddef>

#include "shim/objects.h"

namespace weft::shim {

// Blocks of so many threads that fit a multiprocessor at once.
CUresult ask_occupancy(Context& context, CUfunction function, int threads, std::size_t dynamic_shared_bytes,
                       unsigned flags, int* blocks);

}  // namespace weft::shim
