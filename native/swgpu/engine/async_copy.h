// cp.async and 128-bit accesses. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"

namespace weft::engine {

// Op::d gets the host addresses of Op::c bytes of the destination.
Handler copy_target_handler();
// Copies the lesser of Op::b and Op::c bytes to the host addresses in Op::e; the rest of Op::c bytes becomes zero.
Handler copy_handler();
Handler quad_load_handler();
Handler quad_store_handler();

}  // namespace weft::engine
