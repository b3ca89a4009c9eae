// From drafts to ops: control-flow graph, points of re-convergence, life times of registers, rows.
// Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/draft.h"

namespace weft::engine {

void lay_out(DraftFunction& function, FunctionCode& code);

}  // namespace weft::engine
