// The functions that every program may call without defining them: vprintf and __assertfail. Design:
// docs/design/software-gpu.md.
#pragma once

#include <array>
#include <cstdint>

#include "swgpu/engine/op.h"

namespace weft::engine {

using BuiltinArguments = std::array<uint64_t, 8>;

// Formats one lane's text and hands it to the launch's sink; the number of arguments, or -1 when a pointer is bad.
int32_t print_formatted(Context& context, uint32_t lane, uint64_t format, uint64_t arguments);
void report_assert(Context& context, uint32_t lane, const BuiltinArguments& arguments);

}  // namespace weft::engine
