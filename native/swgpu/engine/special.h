// Values of PTX special registers for the lanes of the running warp. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"
#include "swgpu/ptx/ast.h"

namespace weft::engine {

void read_special(Context& context, ptx::SpecialRegister which, uint32_t component, uint64_t* lanes);

}  // namespace weft::engine
