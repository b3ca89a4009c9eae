// Atomic instructions. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {

enum class AtomicOp : uint8_t { add, min, max, inc, dec, cas, exch, bit_and, bit_or, bit_xor };

// Op::b (and Op::c for cas) are the sources; Op::d is kNoRef for red. The address is as in loads. Null when PTX has no
// such form.
Handler atomic_handler(AtomicOp op, ptx::Type type);

}  // namespace weft::engine
