// Carry chains, predicates, packs and unpacks. Built once per instruction set; see lanes.h.
#include "swgpu/engine/int_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

// Carry chains: the carry is a hidden predicate, Op::c (or Op::e of mad) in and Op::imm (a reference) out.
template <class T, Operation Kind>
const Op* carry(Context& context, const Op* op, uint32_t mask) {
    constexpr bool kMad = Kind == Operation::mad_lo_cc || Kind == Operation::mad_hi_cc || Kind == Operation::madc_lo ||
                          Kind == Operation::madc_hi;
    constexpr bool kIn =
        Kind == Operation::addc || Kind == Operation::subc || Kind == Operation::madc_lo || Kind == Operation::madc_hi;
    constexpr bool kSub = Kind == Operation::sub_cc || Kind == Operation::subc;
    const T* a = row<const T>(context, op->a);
    const T* b = row<const T>(context, op->b);
    const T* c = kMad ? row<const T>(context, op->c) : nullptr;
    uint32_t in = kIn ? predicate(context, op->e) : 0, out = 0;
    bool is_signed = op->aux != 0;
    alignas(64) T result[32];
    for (int i = 0; i < 32; ++i) {
        T x = a[i], y = b[i];
        if (kMad) {
            using S = __typeof__(static_cast<int64_t>(0));
            if (Kind == Operation::mad_lo_cc || Kind == Operation::madc_lo)
                x = x * y;
            else if (sizeof(T) == 8)
                x = is_signed ? static_cast<T>((static_cast<__int128>(static_cast<S>(x)) * static_cast<S>(y)) >> 64)
                              : static_cast<T>((static_cast<unsigned __int128>(x) * y) >> 64);
            else
                x = is_signed ? static_cast<T>((int64_t{static_cast<int32_t>(x)} * static_cast<int32_t>(y)) >> 32)
                              : static_cast<T>((uint64_t{x} * y) >> 32);
            y = c[i];
        }
        T flag = (in >> i) & 1;
        if (kSub) {
            T first = x - y;
            result[i] = first - flag;
            out |= static_cast<uint32_t>(x < y || first < flag) << i;
        } else {
            T first = x + y;
            result[i] = first + flag;
            out |= static_cast<uint32_t>(first < x || result[i] < first) << i;
        }
    }
    blend(row<T>(context, op->d), result, mask);
    if (op->imm != kNoRef) set_predicate(context, static_cast<Ref>(op->imm), out, mask);
    return op + 1;
}

const Op* predicate_and(Context& context, const Op* op, uint32_t mask) {
    set_predicate(context, op->d, predicate(context, op->a) & predicate(context, op->b), mask);
    return op + 1;
}
const Op* predicate_or(Context& context, const Op* op, uint32_t mask) {
    set_predicate(context, op->d, predicate(context, op->a) | predicate(context, op->b), mask);
    return op + 1;
}
const Op* predicate_xor(Context& context, const Op* op, uint32_t mask) {
    set_predicate(context, op->d, predicate(context, op->a) ^ predicate(context, op->b), mask);
    return op + 1;
}
const Op* predicate_not(Context& context, const Op* op, uint32_t mask) {
    set_predicate(context, op->d, ~predicate(context, op->a), mask);
    return op + 1;
}
const Op* predicate_move(Context& context, const Op* op, uint32_t mask) {
    set_predicate(context, op->d, predicate(context, op->a), mask);
    return op + 1;
}

// Packs and unpacks: Op::e is a list of (references, Op::aux) elements of Op::aux bits.
template <class Whole, class Part>
const Op* pack(Context& context, const Op* op, uint32_t mask) {
    constexpr int kCount = sizeof(Whole) / sizeof(Part);
    const uint32_t* refs = context.aux + op->e / 4;
    alignas(64) Whole result[32] = {};
    for (int k = 0; k < kCount; ++k) {
        const auto* from = row<const typename Lane<Part>::Stored>(context, refs[k]);
        for (int i = 0; i < 32; ++i)
            result[i] |= static_cast<Whole>(static_cast<Whole>(Lane<Part>::load(from, i)) << (k * kBits<Part>));
    }
    blend(row<Whole>(context, op->d), result, mask);
    return op + 1;
}
template <class Whole, class Part>
const Op* unpack(Context& context, const Op* op, uint32_t mask) {
    using Stored = typename Lane<Part>::Stored;
    constexpr int kCount = sizeof(Whole) / sizeof(Part);
    const uint32_t* refs = context.aux + op->e / 4;
    alignas(64) Whole whole[32];
    const Whole* from = row<const Whole>(context, op->a);
    for (int i = 0; i < 32; ++i) whole[i] = from[i];
    for (int k = 0; k < kCount; ++k) {
        if (refs[k] == kNoRef) continue;
        alignas(64) Stored part[32];
        for (int i = 0; i < 32; ++i) part[i] = static_cast<Part>(whole[i] >> (k * kBits<Part>));
        blend(row<Stored>(context, refs[k]), part, mask);
    }
    return op + 1;
}
// 16 bits in a 32-bit lane from two bytes.
const Op* pack_bytes16(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* refs = context.aux + op->e / 4;
    const uint32_t* low = row<const uint32_t>(context, refs[0]);
    const uint32_t* high = row<const uint32_t>(context, refs[1]);
    alignas(64) uint32_t result[32];
    for (int i = 0; i < 32; ++i) result[i] = (low[i] & 0xff) | (high[i] & 0xff) << 8;
    blend(row<uint32_t>(context, op->d), result, mask);
    return op + 1;
}
const Op* unpack_bytes16(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* refs = context.aux + op->e / 4;
    alignas(64) uint32_t whole[32], part[32];
    const uint32_t* from = row<const uint32_t>(context, op->a);
    for (int i = 0; i < 32; ++i) whole[i] = from[i];
    for (int k = 0; k < 2; ++k) {
        if (refs[k] == kNoRef) continue;
        for (int i = 0; i < 32; ++i) part[i] = (whole[i] >> (8 * k)) & 0xff;
        blend(row<uint32_t>(context, refs[k]), part, mask);
    }
    return op + 1;
}

// mov.b64 {d0, d1}, a: q.type is the whole, q.type_b the part.
Handler pack_of(const ArithmeticQuery& q) {
    uint32_t whole = ptx::size_of(q.type), part = ptx::size_of(q.type_b);
    bool packs = q.operation == Operation::pack;
    if (whole == 8 && part == 4) return packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>;
    if (whole == 8 && part == 2) return packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>;
    if (whole == 8 && part == 1) return packs ? pack<uint64_t, uint8_t> : unpack<uint64_t, uint8_t>;
    if (whole == 4 && part == 2) return packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
    if (whole == 4 && part == 1) return packs ? pack<uint32_t, uint8_t> : unpack<uint32_t, uint8_t>;
    if (whole == 2 && part == 1) return packs ? pack_bytes16 : unpack_bytes16;
    return nullptr;
}

template <Operation Kind>
Handler carry_of(ptx::Type type) {
    if (ptx::size_of(type) == 4) return carry<uint32_t, Kind>;
    if (ptx::size_of(type) == 8) return carry<uint64_t, Kind>;
    return nullptr;
}

}  // namespace

Handler select_moves(const ArithmeticQuery& q) {
    ptx::Type t = q.type;
    switch (q.operation) {
        case Operation::pred_and: return predicate_and;
        case Operation::pred_or: return predicate_or;
        case Operation::pred_xor: return predicate_xor;
        case Operation::pred_not: return predicate_not;
        case Operation::mov_pred: return predicate_move;
        case Operation::pack:
        case Operation::unpack: return pack_of(q);
        case Operation::add_cc: return carry_of<Operation::add_cc>(t);
        case Operation::addc: return carry_of<Operation::addc>(t);
        case Operation::sub_cc: return carry_of<Operation::sub_cc>(t);
        case Operation::subc: return carry_of<Operation::subc>(t);
        case Operation::mad_lo_cc: return carry_of<Operation::mad_lo_cc>(t);
        case Operation::mad_hi_cc: return carry_of<Operation::mad_hi_cc>(t);
        case Operation::madc_lo: return carry_of<Operation::madc_lo>(t);
        case Operation::madc_hi: return carry_of<Operation::madc_hi>(t);
        default: return nullptr;
    }
}

}  // namespace weft::engine::WEFT_ISA
