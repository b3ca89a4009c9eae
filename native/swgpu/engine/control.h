// Handlers that change control flow or look at the block as a whole; one build for all machines. The scheduler they
// work with is in warp.h. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"

namespace weft::engine {

enum class ControlOp : uint8_t {
    branch,
    indexed_branch,
    join,
    call,
    ret,
    exit,
    trap,
    breakpoint,
    special_32,
    special_64,
    frame_address_32,
    frame_address_64,
    nop,
    fence,
    nanosleep,
    yield,
    barrier,
    barrier_warp,
};

Handler control_handler(ControlOp op);

// What a barrier instruction does; in Op::aux.
enum class BarrierKind : uint32_t { sync, arrive, red_popc, red_and, red_or };

}  // namespace weft::engine
