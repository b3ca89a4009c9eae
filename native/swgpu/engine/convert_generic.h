// Conversions between any two types in any rounding, exactly and lane by lane. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/query.h"

namespace weft::engine {

// Null when PTX has no such conversion. The query must be put into Op::imm by encode_conversion.
Handler generic_conversion(const ConvertQuery& query);
// cvt to a pair of halves (or one pair from two f32): Op::a is the upper source, Op::b the lower.
Handler pair_conversion(const ConvertQuery& query);
uint64_t encode_conversion(const ConvertQuery& query);

}  // namespace weft::engine
