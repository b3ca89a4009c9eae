// PTX text to ModuleText. Resolves registers, variables and labels by scope; checks grammar, not the operands of single
// opcodes. Design: docs/design/software-gpu.md.
#pragma once

#include <string_view>

#include "base/status.h"
#include "swgpu/ptx/ast.h"

namespace weft::ptx {

// Errors read "line N: ...".
Result<ModuleText> parse(std::string_view text);

}  // namespace weft::ptx
