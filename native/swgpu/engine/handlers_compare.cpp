// setp and set. Built once per instruction set; see lanes.h.
#include "swgpu/engine/float_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <Compare C, class T>
WEFT_INLINE bool holds(T a, T b) {
    bool ordered = a == a && b == b;
    switch (C) {
        case Compare::eq: return a == b;
        case Compare::ne: return a != b && ordered;
        case Compare::lt: return a < b;
        case Compare::le: return a <= b;
        case Compare::gt: return a > b;
        case Compare::ge: return a >= b;
        case Compare::equ: return a == b || !ordered;
        case Compare::neu: return a != b;
        case Compare::ltu: return !(a >= b);
        case Compare::leu: return !(a > b);
        case Compare::gtu: return !(a <= b);
        case Compare::geu: return !(a < b);
        case Compare::num: return ordered;
        case Compare::nan: return !ordered;
    }
    return false;
}

// What all comparisons do with their mask: combine it with a predicate, then write predicates or a register of truth
// values.
const Op* end_compare(Context& context, const Op* op, uint32_t mask, uint32_t result) {
    uint32_t inverse = ~result;
    if (op->c != kNoRef) {
        uint32_t other = predicate(context, op->c);
        switch (op->aux & 3) {
            case 1:
                result &= other;
                inverse &= other;
                break;
            case 2:
                result |= other;
                inverse |= other;
                break;
            case 3:
                result ^= other;
                inverse ^= other;
                break;
            default: break;
        }
    }
    auto end = static_cast<CompareEnd>(op->aux & ~3u);
    if (end == CompareEnd::plain) {
        set_predicate(context, op->d, result, mask);
        if (op->e != kNoRef) set_predicate(context, op->e, inverse, mask);
        return op + 1;
    }
    uint32_t truth = end == CompareEnd::mask_f32    ? 0x3f800000u
                     : end == CompareEnd::mask_u16  ? 0xffffu
                     : end == CompareEnd::mask_f16  ? 0x3c00u
                     : end == CompareEnd::mask_bf16 ? 0x3f80u
                                                    : ~0u;
    alignas(64) uint32_t value[32];
    for (int i = 0; i < 32; ++i) value[i] = (result >> i) & 1 ? truth : 0;
    blend(row<uint32_t>(context, op->d), value, mask);
    return op + 1;
}

template <class T>
struct Plain {
    using Stored = typename Lane<T>::Stored;
    using Value = T;
    WEFT_INLINE T load(const Stored* p, int i) { return Lane<T>::load(p, i); }
};
struct Flushed {
    using Stored = float;
    using Value = float;
    WEFT_INLINE float load(const float* p, int i) { return flush<true>(p[i]); }
};
template <class H, int Shift, bool Ftz>
struct Half {
    using Stored = uint32_t;
    using Value = float;
    WEFT_INLINE float load(const uint32_t* p, int i) {
        uint32_t bits = (p[i] >> Shift) & 0xffffu;
        if (Ftz) bits = (bits & H::kExponent) == 0 ? bits & 0x8000u : bits;
        return H::load(bits);
    }
};

template <Compare C, class Load>
WEFT_INLINE uint32_t compare_mask(Context& context, const Op* op) {
    const auto* a = row<const typename Load::Stored>(context, op->a);
    const auto* b = row<const typename Load::Stored>(context, op->b);
    alignas(64) int32_t lanes[32];
    for (int i = 0; i < 32; ++i) lanes[i] = holds<C>(Load::load(a, i), Load::load(b, i)) ? -1 : 0;
    return sign_mask(lanes);
}

template <Compare C, class Load>
const Op* compare(Context& context, const Op* op, uint32_t mask) {
    return end_compare(context, op, mask, compare_mask<C, Load>(context, op));
}

// Pairs: the first predicate (or low half) is of the low elements, the second of the high ones.
template <Compare C, class H>
const Op* compare_pair(Context& context, const Op* op, uint32_t mask) {
    uint32_t low = compare_mask<C, Half<H, 0, false>>(context, op),
             high = compare_mask<C, Half<H, 16, false>>(context, op);
    if (op->c != kNoRef) {
        uint32_t other = predicate(context, op->c), kind = op->aux & 3;
        low = kind == 1 ? low & other : kind == 2 ? low | other : low ^ other;
        high = kind == 1 ? high & other : kind == 2 ? high | other : high ^ other;
    }
    auto end = static_cast<CompareEnd>(op->aux & ~3u);
    if (end == CompareEnd::plain) {
        set_predicate(context, op->d, low, mask);
        if (op->e != kNoRef) set_predicate(context, op->e, high, mask);
        return op + 1;
    }
    uint32_t truth = end == CompareEnd::mask_f16 ? 0x3c00u : end == CompareEnd::mask_bf16 ? 0x3f80u : 0xffffu;
    alignas(64) uint32_t value[32];
    for (int i = 0; i < 32; ++i) value[i] = ((low >> i) & 1 ? truth : 0) | ((high >> i) & 1 ? truth << 16 : 0);
    blend(row<uint32_t>(context, op->d), value, mask);
    return op + 1;
}

template <class Load>
Handler ordered_of(Compare c) {
    switch (c) {
        case Compare::eq: return compare<Compare::eq, Load>;
        case Compare::ne: return compare<Compare::neu, Load>;
        case Compare::lt: return compare<Compare::lt, Load>;
        case Compare::le: return compare<Compare::le, Load>;
        case Compare::gt: return compare<Compare::gt, Load>;
        case Compare::ge: return compare<Compare::ge, Load>;
        default: return nullptr;
    }
}

template <class Load>
Handler float_of(Compare c) {
    switch (c) {
        case Compare::ne: return compare<Compare::ne, Load>;
        case Compare::equ: return compare<Compare::equ, Load>;
        case Compare::neu: return compare<Compare::neu, Load>;
        case Compare::ltu: return compare<Compare::ltu, Load>;
        case Compare::leu: return compare<Compare::leu, Load>;
        case Compare::gtu: return compare<Compare::gtu, Load>;
        case Compare::geu: return compare<Compare::geu, Load>;
        case Compare::num: return compare<Compare::num, Load>;
        case Compare::nan: return compare<Compare::nan, Load>;
        default: return ordered_of<Load>(c);
    }
}

template <class H>
Handler pair_of(Compare c) {
    switch (c) {
        case Compare::eq: return compare_pair<Compare::eq, H>;
        case Compare::ne: return compare_pair<Compare::ne, H>;
        case Compare::lt: return compare_pair<Compare::lt, H>;
        case Compare::le: return compare_pair<Compare::le, H>;
        case Compare::gt: return compare_pair<Compare::gt, H>;
        case Compare::ge: return compare_pair<Compare::ge, H>;
        case Compare::equ: return compare_pair<Compare::equ, H>;
        case Compare::neu: return compare_pair<Compare::neu, H>;
        case Compare::ltu: return compare_pair<Compare::ltu, H>;
        case Compare::leu: return compare_pair<Compare::leu, H>;
        case Compare::gtu: return compare_pair<Compare::gtu, H>;
        case Compare::geu: return compare_pair<Compare::geu, H>;
        case Compare::num: return compare_pair<Compare::num, H>;
        case Compare::nan: return compare_pair<Compare::nan, H>;
    }
    return nullptr;
}

}  // namespace

Handler select_compare(const CompareQuery& q) {
    switch (q.type) {
        case ptx::Type::u16:
        case ptx::Type::b16: return ordered_of<Plain<uint16_t>>(q.compare);
        case ptx::Type::s16: return ordered_of<Plain<int16_t>>(q.compare);
        case ptx::Type::u32:
        case ptx::Type::b32: return ordered_of<Plain<uint32_t>>(q.compare);
        case ptx::Type::s32: return ordered_of<Plain<int32_t>>(q.compare);
        case ptx::Type::u64:
        case ptx::Type::b64: return ordered_of<Plain<uint64_t>>(q.compare);
        case ptx::Type::s64: return ordered_of<Plain<int64_t>>(q.compare);
        case ptx::Type::f32: return q.ftz ? float_of<Flushed>(q.compare) : float_of<Plain<float>>(q.compare);
        case ptx::Type::f64: return q.ftz ? nullptr : float_of<Plain<double>>(q.compare);
        case ptx::Type::f16:
            return q.ftz ? float_of<Half<F16, 0, true>>(q.compare) : float_of<Half<F16, 0, false>>(q.compare);
        case ptx::Type::bf16: return q.ftz ? nullptr : float_of<Half<BF16, 0, false>>(q.compare);
        case ptx::Type::f16x2: return q.ftz ? nullptr : pair_of<F16>(q.compare);
        case ptx::Type::bf16x2: return q.ftz ? nullptr : pair_of<BF16>(q.compare);
        default: return nullptr;
    }
}

}  // namespace weft::engine::WEFT_ISA
