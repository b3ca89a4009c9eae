// Matrix fragments spread over a warp: mma, ldmatrix, stmatrix. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {

struct MatrixShape {
    uint32_t m = 16, k = 16;  // n is 8
    ptx::Type a = ptx::Type::f16, b = ptx::Type::f16, c = ptx::Type::f32, d = ptx::Type::f32;
};

// Op::e is a list: D, A, B, C fragments in that order. Null when there is no such form.
Handler mma_handler(const MatrixShape& shape);
// Op::e is a list of the matrices' registers; Op::aux as in loads, with the number of matrices as vector length;
// Op::imm as in loads.
Handler matrix_load_handler(bool transposed);
Handler matrix_store_handler(bool transposed);

}  // namespace weft::engine
