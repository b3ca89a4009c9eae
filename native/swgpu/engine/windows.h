// Handlers around addresses and odd widths that run rarely: generic windows, isspacep, 128-bit moves, cvt.pack.
// Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"

namespace weft::engine {

Handler window_add_handler();
Handler window_subtract_handler();
Handler space_test_handler();
Handler move_quad_handler();
Handler pack_quad_handler(bool packs, uint32_t count);
Handler convert_pack_handler();

}  // namespace weft::engine
