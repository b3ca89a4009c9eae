// What the decoder asks of a handler set: one enumeration per group of instructions and a record that names the
// variant. Every function answers null for a variant that PTX does not have or that is not supported. Design:
// docs/design/software-gpu.md.
#pragma once

#include <string_view>

#include "swgpu/engine/op.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {

enum class Operation : uint8_t {
    mov,
    add,
    sub,
    mul_lo,
    mul_hi,
    mul_wide,
    mad_lo,
    mad_hi,
    mad_wide,
    mul24_lo,
    mul24_hi,
    mad24_lo,
    mad24_hi,
    sad,
    div,
    rem,
    abs,
    neg,
    min,
    max,
    popc,
    clz,
    bfind,
    bfind_shift,
    brev,
    bfe,
    bfi,
    fns,
    dp4a,
    dp2a_lo,
    dp2a_hi,
    szext_clamp,
    szext_wrap,
    bmsk_clamp,
    bmsk_wrap,
    prmt,
    prmt_f4e,
    prmt_b4e,
    prmt_rc8,
    prmt_ecl,
    prmt_ecr,
    prmt_rc16,
    bit_and,
    bit_or,
    bit_xor,
    bit_not,
    cnot,
    lop3,
    shl,
    shr,
    shf_l_clamp,
    shf_l_wrap,
    shf_r_clamp,
    shf_r_wrap,
    add_cc,
    addc,
    sub_cc,
    subc,
    mad_lo_cc,
    mad_hi_cc,
    madc_lo,
    madc_hi,
    selp,
    slct,
    mul,
    fma,
    rcp,
    sqrt,
    rsqrt,
    sin,
    cos,
    ex2,
    lg2,
    tanh,
    copysign,
    min3,
    max3,
    testp_finite,
    testp_infinite,
    testp_number,
    testp_notanumber,
    testp_normal,
    testp_subnormal,
    mov_pred,
    pack,
    unpack,
    pred_and,
    pred_or,
    pred_xor,
    pred_not,
};

enum class Rounding : uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi };

struct ArithmeticQuery {
    Operation operation = Operation::mov;
    ptx::Type type = ptx::Type::none;
    ptx::Type type_b = ptx::Type::none;  // dp4a, slct
    Rounding rounding = Rounding::none;
    bool ftz = false;
    bool sat = false;
    bool relu = false;
    bool nan = false;
    bool xorsign_abs = false;
    bool approx = false;  // or .full
};

enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

// How a comparison ends; in Op::aux.
enum class CompareEnd : uint32_t {
    plain = 0,
    with_and = 1,
    with_or = 2,
    with_xor = 3,
    mask_u32 = 4,
    mask_f32 = 8,
    mask_u16 = 12,
    mask_f16 = 16,
    mask_bf16 = 20
};

struct CompareQuery {
    Compare compare = Compare::eq;
    ptx::Type type = ptx::Type::none;
    bool ftz = false;
};

struct ConvertQuery {
    ptx::Type to = ptx::Type::none;
    ptx::Type from = ptx::Type::none;
    Rounding rounding = Rounding::none;
    bool ftz = false;
    bool sat = false;  // .sat, or .satfinite on formats with infinities
    bool relu = false;
    bool wide_source = false;  // the register holds 64 bits though the type has fewer
    bool wide_destination = false;
};

struct MemoryQuery {
    bool is_store = false;
    ptx::Type type = ptx::Type::none;
    bool wide_register = false;  // the registers hold 64 bits
};

// Flags in Op::aux of loads and stores.
namespace memory_flags {
inline constexpr uint32_t kSpaceMask = 15;
inline constexpr uint32_t kNarrowAddress = 16;  // the address register holds 32 bits
inline constexpr uint32_t kOrdered = 32;        // volatile, relaxed, acquire, release
inline constexpr uint32_t kVectorShift =
    8;  // vector length; when above 1, Op::e / 4 is the index of the list of references
inline constexpr uint32_t kNoBase = 64;
}  // namespace memory_flags

struct HandlerSet {
    std::string_view name;
    Handler (*integer)(const ArithmeticQuery&);
    Handler (*single)(const ArithmeticQuery&);  // f32, f64
    Handler (*half)(const ArithmeticQuery&);    // f16, bf16 and their pairs
    Handler (*compare)(const CompareQuery&);
    Handler (*convert)(const ConvertQuery&);
    Handler (*memory)(const MemoryQuery&);
};

// The best set for this machine.
const HandlerSet& handler_set();
// These two groups exist once: they are not helped by wider vectors.
Handler directed_rounding_handler(const ArithmeticQuery& query);

}  // namespace weft::engine
