// f16, bf16 and pairs of them. Values are widened to f32 (f64 inside fma), computed there and rounded once; the widths
// are such that this equals rounding the exact result. Built once per instruction set; see lanes.h.
#include "swgpu/engine/float_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <class H, bool Ftz>
WEFT_INLINE float load(uint32_t bits) {
    if constexpr (Ftz) bits = (bits & H::kExponent) == 0 ? bits & 0x8000u : bits;
    return H::load(bits);
}
template <class H, bool Ftz>
WEFT_INLINE uint32_t store(float value) {
    uint32_t bits = H::store(value);
    if constexpr (Ftz) bits = (bits & H::kExponent) == 0 ? bits & 0x8000u : bits;
    return bits;
}
WEFT_INLINE float relu(float a) { return a > 0.0f ? a : a != a ? a : 0.0f; }

enum class End : uint8_t { plain, sat, relu };
template <class H, bool Ftz, End E>
WEFT_INLINE uint32_t finish_half(float value) {
    if constexpr (E == End::sat) value = clamp01(value);
    if constexpr (E == End::relu) value = relu(value);
    return store<H, Ftz>(value);
}

template <class H, bool Ftz, End E>
struct Add {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        return finish_half<H, Ftz, E>(load<H, Ftz>(a) + load<H, Ftz>(b));
    }
};
template <class H, bool Ftz, End E>
struct Sub {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        return finish_half<H, Ftz, E>(load<H, Ftz>(a) - load<H, Ftz>(b));
    }
};
template <class H, bool Ftz, End E>
struct Mul {
    // The product of two bf16 may be too small for f32 to hold exactly.
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        return finish_half<H, Ftz, E>(odd_f32(double(load<H, Ftz>(a)) * double(load<H, Ftz>(b))));
    }
};
template <class H, bool Ftz, End E>
struct Fma {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        return finish_half<H, Ftz, E>(H::fma(load<H, Ftz>(a), load<H, Ftz>(b), load<H, Ftz>(c)));
    }
};
template <class H, bool Ftz, End E>
struct Abs {
    WEFT_INLINE uint32_t run(uint32_t a) {
        uint32_t bits = a & 0x7fffu;
        return Ftz && (bits & H::kExponent) == 0 ? 0 : bits;
    }
};
template <class H, bool Ftz, End E>
struct Neg {
    WEFT_INLINE uint32_t run(uint32_t a) {
        uint32_t bits = (a & 0xffffu) ^ 0x8000u;
        return Ftz && (bits & H::kExponent) == 0 ? bits & 0x8000u : bits;
    }
};
template <bool Max, bool Nan, bool Xorsign>
struct MinMax {
    template <class H, bool Ftz, End E>
    struct Of {
        WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
            float x = load<H, Ftz>(a), y = load<H, Ftz>(b);
            uint32_t sign = Xorsign ? (a ^ b) & 0x8000u : 0;
            float result = Xorsign ? pick<Max>(__builtin_fabsf(x), __builtin_fabsf(y)) : pick<Max>(x, y);
            bool bad = result != result || (Nan && (x != x || y != y));
            return bad ? 0x7fffu : H::store(result) | sign;
        }
    };
};
template <class H, bool Ftz, End E>
struct Ex2 {
    WEFT_INLINE uint32_t run(uint32_t a) { return store<H, Ftz>(approx_ex2(load<H, Ftz>(a))); }
};
template <class H, bool Ftz, End E>
struct Tanh {
    WEFT_INLINE uint32_t run(uint32_t a) { return H::store(approx_tanh(H::load(a))); }
};

template <class F, bool Pair>
struct Lift1 {
    using D = uint32_t;
    using A = uint32_t;
    WEFT_INLINE uint32_t run(uint32_t a) {
        uint32_t low = F::run(a & 0xffffu);
        return Pair ? low | F::run(a >> 16) << 16 : low;
    }
};
template <class F, bool Pair>
struct Lift2 {
    using D = uint32_t;
    using A = uint32_t;
    using B = uint32_t;
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        uint32_t low = F::run(a & 0xffffu, b & 0xffffu);
        return Pair ? low | F::run(a >> 16, b >> 16) << 16 : low;
    }
};
template <class F, bool Pair>
struct Lift3 {
    using D = uint32_t;
    using A = uint32_t;
    using B = uint32_t;
    using C = uint32_t;
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t low = F::run(a & 0xffffu, b & 0xffffu, c & 0xffffu);
        return Pair ? low | F::run(a >> 16, b >> 16, c >> 16) << 16 : low;
    }
};

struct One {
    template <class F, bool Pair>
    static Handler handler() {
        return map1<Lift1<F, Pair>>;
    }
};
struct Two {
    template <class F, bool Pair>
    static Handler handler() {
        return map2<Lift2<F, Pair>>;
    }
};
struct Three {
    template <class F, bool Pair>
    static Handler handler() {
        return map3<Lift3<F, Pair>>;
    }
};

template <template <class, bool, End> class F, class Map, bool Ftz, End E>
Handler formats(ptx::Type type) {
    switch (type) {
        case ptx::Type::f16: return Map::template handler<F<F16, Ftz, E>, false>();
        case ptx::Type::f16x2: return Map::template handler<F<F16, Ftz, E>, true>();
        case ptx::Type::bf16: return Map::template handler<F<BF16, Ftz, E>, false>();
        case ptx::Type::bf16x2: return Map::template handler<F<BF16, Ftz, E>, true>();
        default: return nullptr;
    }
}
template <template <class, bool, End> class F, class Map>
Handler plain(const ArithmeticQuery& q) {
    if (q.sat || q.relu) return nullptr;
    return q.ftz ? formats<F, Map, true, End::plain>(q.type) : formats<F, Map, false, End::plain>(q.type);
}
template <template <class, bool, End> class F, class Map>
Handler with_sat(const ArithmeticQuery& q) {
    if (q.relu) return nullptr;
    if (!q.sat) return plain<F, Map>(q);
    return q.ftz ? formats<F, Map, true, End::sat>(q.type) : formats<F, Map, false, End::sat>(q.type);
}
template <bool Max>
Handler minmax(const ArithmeticQuery& q) {
    if (q.xorsign_abs) {
        return q.nan ? plain<MinMax<Max, true, true>::template Of, Two>(q)
                     : plain<MinMax<Max, false, true>::template Of, Two>(q);
    }
    return q.nan ? plain<MinMax<Max, true, false>::template Of, Two>(q)
                 : plain<MinMax<Max, false, false>::template Of, Two>(q);
}

}  // namespace

Handler select_half(const ArithmeticQuery& q) {
    if (q.rounding != Rounding::none && q.rounding != Rounding::rn) return nullptr;
    switch (q.operation) {
        case Operation::add: return with_sat<Add, Two>(q);
        case Operation::sub: return with_sat<Sub, Two>(q);
        case Operation::mul: return with_sat<Mul, Two>(q);
        case Operation::fma:
            if (!q.relu) return with_sat<Fma, Three>(q);
            if (q.sat) return nullptr;
            return q.ftz ? formats<Fma, Three, true, End::relu>(q.type) : formats<Fma, Three, false, End::relu>(q.type);
        case Operation::abs: return plain<Abs, One>(q);
        case Operation::neg: return plain<Neg, One>(q);
        case Operation::min: return minmax<false>(q);
        case Operation::max: return minmax<true>(q);
        case Operation::ex2: return plain<Ex2, One>(q);
        case Operation::tanh: return plain<Tanh, One>(q);
        default: return nullptr;
    }
}

}  // namespace weft::engine::WEFT_ISA
