// f32 and f64 arithmetic, rounding to nearest; other roundings are in handlers_directed.cpp. Built once per instruction
// set; see lanes.h.
#include <cmath>

#include "swgpu/engine/float_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <class T>
struct Same1 {
    using D = T;
    using A = T;
};
template <class T>
struct Same2 {
    using D = T;
    using A = T;
    using B = T;
};
template <class T>
struct Same3 {
    using D = T;
    using A = T;
    using B = T;
    using C = T;
};

WEFT_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WEFT_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
WEFT_INLINE float root(float a) { return __builtin_sqrtf(a); }
WEFT_INLINE double root(double a) { return __builtin_sqrt(a); }

template <class T, bool Ftz, bool Sat>
struct Add : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return finish<Ftz, Sat>(flush<Ftz>(a) + flush<Ftz>(b)); }
};
template <class T, bool Ftz, bool Sat>
struct Sub : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return finish<Ftz, Sat>(flush<Ftz>(a) - flush<Ftz>(b)); }
};
template <class T, bool Ftz, bool Sat>
struct Mul : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return finish<Ftz, Sat>(flush<Ftz>(a) * flush<Ftz>(b)); }
};
template <class T, bool Ftz, bool Sat>
struct Fma : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return finish<Ftz, Sat>(fused(flush<Ftz>(a), flush<Ftz>(b), flush<Ftz>(c))); }
};
template <class T, bool Ftz, bool>
struct Div : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return finish<Ftz, false>(flush<Ftz>(a) / flush<Ftz>(b)); }
};
template <class T, bool Ftz>
struct Rcp : Same1<T> {
    WEFT_INLINE T run(T a) { return finish<Ftz, false>(T(1) / flush<Ftz>(a)); }
};
template <class T, bool Ftz>
struct Sqrt : Same1<T> {
    WEFT_INLINE T run(T a) { return finish<Ftz, false>(root(flush<Ftz>(a))); }
};
template <class T, bool Ftz>
struct Rsqrt : Same1<T> {
    WEFT_INLINE T run(T a) {
        return finish<Ftz, false>(static_cast<T>(1.0 / root(static_cast<double>(flush<Ftz>(a)))));
    }
};
template <class T, bool Ftz>
struct Abs : Same1<T> {
    WEFT_INLINE T run(T a) {
        return flush<Ftz>(sizeof(T) == 4 ? static_cast<T>(__builtin_fabsf(static_cast<float>(a)))
                                         : static_cast<T>(__builtin_fabs(a)));
    }
};
template <bool Ftz>
struct Neg32 : Same1<float> {
    WEFT_INLINE float run(float a) { return f32_of(bits_of(flush<Ftz>(a)) ^ 0x80000000u); }
};
struct Neg64 : Same1<double> {
    WEFT_INLINE double run(double a) { return -a; }
};
template <class T, bool Ftz, bool Max>
struct MinMax : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return pick<Max>(flush<Ftz>(a), flush<Ftz>(b)); }
};
template <bool Ftz, bool Max>
struct MinMaxNan : Same2<float> {
    WEFT_INLINE float run(float a, float b) {
        float result = pick<Max>(flush<Ftz>(a), flush<Ftz>(b));
        return a != a || b != b ? f32_of(kNan32) : result;
    }
};
template <bool Ftz, bool Max, bool Nan>
struct MinMaxXorsign : Same2<float> {
    WEFT_INLINE float run(float a, float b) {
        uint32_t sign = (bits_of(a) ^ bits_of(b)) & 0x80000000u;
        float result = pick<Max>(__builtin_fabsf(flush<Ftz>(a)), __builtin_fabsf(flush<Ftz>(b)));
        bool bad = Nan && (a != a || b != b);
        return bad || result != result ? f32_of(kNan32) : f32_of(bits_of(result) | sign);
    }
};
template <bool Ftz>
struct Ex2 : Same1<float> {
    WEFT_INLINE float run(float a) { return flush<Ftz>(approx_ex2(flush<Ftz>(a))); }
};
template <bool Ftz>
struct Lg2 : Same1<float> {
    WEFT_INLINE float run(float a) { return flush<Ftz>(approx_lg2(flush<Ftz>(a))); }
};
struct Tanh : Same1<float> {
    WEFT_INLINE float run(float a) { return approx_tanh(a); }
};
struct Copysign32 : Same2<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) { return (a & 0x80000000u) | (b & 0x7fffffffu); }
};
struct Copysign64 : Same2<uint64_t> {
    WEFT_INLINE uint64_t run(uint64_t a, uint64_t b) { return (a & 0x8000000000000000u) | (b & 0x7fffffffffffffffu); }
};

template <bool Cos, bool Ftz>
const Op* sincos(Context& context, const Op* op, uint32_t mask) {
    const float* a = row<const float>(context, op->a);
    alignas(64) float result[32], input[32];
    uint32_t large = 0;
    for (int i = 0; i < 32; ++i) {
        input[i] = flush<Ftz>(a[i]);
        result[i] = flush<Ftz>(approx_sincos<Cos>(input[i]));
    }
    for (int i = 0; i < 32; ++i) large |= static_cast<uint32_t>(__builtin_fabsf(input[i]) > kTrigonometricLimit) << i;
    for (large &= mask; large != 0; large &= large - 1) {
        int i = __builtin_ctz(large);
        if (input[i] - input[i] == 0.0f)
            result[i] =
                static_cast<float>(Cos ? ::cos(static_cast<double>(input[i])) : ::sin(static_cast<double>(input[i])));
    }
    blend(row<float>(context, op->d), result, mask);
    return op + 1;
}

// Double-precision forms that PTX does not define but that programs use.
template <Operation Kind>
const Op* library64(Context& context, const Op* op, uint32_t mask) {
    const double* a = row<const double>(context, op->a);
    alignas(64) double result[32];
    for (int i = 0; i < 32; ++i) {
        if (!((mask >> i) & 1)) continue;
        if (Kind == Operation::ex2) result[i] = ::exp2(a[i]);
        if (Kind == Operation::lg2) result[i] = ::log2(a[i]);
        if (Kind == Operation::sin) result[i] = ::sin(a[i]);
        if (Kind == Operation::cos) result[i] = ::cos(a[i]);
        if (Kind == Operation::tanh) result[i] = ::tanh(a[i]);
    }
    blend(row<double>(context, op->d), result, mask);
    return op + 1;
}

template <template <class, bool, bool> class F, class Map>
Handler flags(const ArithmeticQuery& q) {
    if (q.type == ptx::Type::f64) return q.ftz || q.sat ? nullptr : Map::template handler<F<double, false, false>>();
    if (q.ftz)
        return q.sat ? Map::template handler<F<float, true, true>>() : Map::template handler<F<float, true, false>>();
    return q.sat ? Map::template handler<F<float, false, true>>() : Map::template handler<F<float, false, false>>();
}
struct Two {
    template <class F>
    static Handler handler() {
        return map2<F>;
    }
};
struct Three {
    template <class F>
    static Handler handler() {
        return map3<F>;
    }
};

template <template <class, bool> class F>
Handler one(const ArithmeticQuery& q) {
    if (q.sat) return nullptr;
    // rcp.approx.ftz.f64 and its like flush nothing that a double result could show.
    if (q.type == ptx::Type::f64) return map1<F<double, false>>;
    return q.ftz ? map1<F<float, true>> : map1<F<float, false>>;
}

template <bool Max>
Handler minmax(const ArithmeticQuery& q) {
    if (q.type == ptx::Type::f64) return q.ftz || q.nan || q.xorsign_abs ? nullptr : map2<MinMax<double, false, Max>>;
    if (q.xorsign_abs) {
        if (q.nan) return q.ftz ? map2<MinMaxXorsign<true, Max, true>> : map2<MinMaxXorsign<false, Max, true>>;
        return q.ftz ? map2<MinMaxXorsign<true, Max, false>> : map2<MinMaxXorsign<false, Max, false>>;
    }
    if (q.nan) return q.ftz ? map2<MinMaxNan<true, Max>> : map2<MinMaxNan<false, Max>>;
    return q.ftz ? map2<MinMax<float, true, Max>> : map2<MinMax<float, false, Max>>;
}

Handler function_of(const ArithmeticQuery& q) {
    bool wide = q.type == ptx::Type::f64;
    switch (q.operation) {
        case Operation::sin:
            if (wide) return library64<Operation::sin>;
            return q.ftz ? sincos<false, true> : sincos<false, false>;
        case Operation::cos:
            if (wide) return library64<Operation::cos>;
            return q.ftz ? sincos<true, true> : sincos<true, false>;
        case Operation::ex2:
            if (wide) return library64<Operation::ex2>;
            return q.ftz ? map1<Ex2<true>> : map1<Ex2<false>>;
        case Operation::lg2:
            if (wide) return library64<Operation::lg2>;
            return q.ftz ? map1<Lg2<true>> : map1<Lg2<false>>;
        case Operation::tanh: return wide ? static_cast<Handler>(library64<Operation::tanh>) : map1<Tanh>;
        default: return nullptr;
    }
}

}  // namespace

Handler select_single(const ArithmeticQuery& q) {
    bool wide = q.type == ptx::Type::f64;
    if (q.rounding != Rounding::none && q.rounding != Rounding::rn) return directed_rounding_handler(q);
    switch (q.operation) {
        case Operation::add: return flags<Add, Two>(q);
        case Operation::sub: return flags<Sub, Two>(q);
        case Operation::mul: return flags<Mul, Two>(q);
        case Operation::fma: return flags<Fma, Three>(q);
        case Operation::div: return q.sat ? nullptr : flags<Div, Two>(q);
        case Operation::rcp: return one<Rcp>(q);
        case Operation::sqrt: return one<Sqrt>(q);
        case Operation::rsqrt: return one<Rsqrt>(q);
        case Operation::abs: return one<Abs>(q);
        case Operation::neg:
            if (wide) return map1<Neg64>;
            return q.ftz ? map1<Neg32<true>> : map1<Neg32<false>>;
        case Operation::min: return minmax<false>(q);
        case Operation::max: return minmax<true>(q);
        case Operation::copysign: return wide ? static_cast<Handler>(map2<Copysign64>) : map2<Copysign32>;
        default: return function_of(q);
    }
}

}  // namespace weft::engine::WEFT_ISA
