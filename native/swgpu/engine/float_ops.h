// Floating-point building blocks of the handlers: flushing, canonical NaNs, clamps, half formats, approximations. All
// branch-free, so that loops over lanes vectorise. For handler files; see lanes.h.
#pragma once

#include "swgpu/engine/lanes.h"

namespace weft::engine::WEFT_ISA {
namespace {

WEFT_INLINE float f32_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
WEFT_INLINE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
WEFT_INLINE double f64_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }
WEFT_INLINE uint64_t bits_of(double value) { return __builtin_bit_cast(uint64_t, value); }

inline constexpr uint32_t kNan32 = 0x7fffffffu;

template <bool Ftz>
WEFT_INLINE float flush(float a) {
    if constexpr (!Ftz) return a;
    uint32_t bits = bits_of(a);
    return f32_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
template <bool Ftz>
WEFT_INLINE double flush(double a) {
    return a;
}

// Results of f32 instructions that are not a number are the canonical NaN; f64 keeps what the arithmetic gives.
WEFT_INLINE float canonical(float a) { return a != a ? f32_of(kNan32) : a; }
WEFT_INLINE double canonical(double a) { return a; }

// To [0, 1]; a NaN becomes +0.
template <class T>
WEFT_INLINE T clamp01(T a) {
    return a > T(0) ? (a < T(1) ? a : T(1)) : T(0);
}

template <bool Ftz, bool Sat, class T>
WEFT_INLINE T finish(T a) {
    a = flush<Ftz>(a);
    if constexpr (Sat) return clamp01(a);
    return canonical(a);
}

// ---- half formats ----

WEFT_INLINE float f32_from_f16(uint32_t half) {
    uint32_t magnitude = (half & 0x7fffu) << 13;
    float scaled = f32_of(magnitude) * f32_of(0x77800000u);  // 2^112
    uint32_t bits = bits_of(scaled) | ((half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u);
    bits |= (half & 0x8000u) << 16;
    return f32_of(bits);
}

WEFT_INLINE uint32_t f16_from_f32(float value) {
    uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
    uint32_t small = bits_of(f32_of(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t result = magnitude < 0x38800000u ? small : normal;
    result = magnitude >= 0x47800000u ? 0x7c00u : result;
    result |= sign;
    return magnitude > 0x7f800000u ? 0x7fffu : result;
}

WEFT_INLINE float f32_from_bf16(uint32_t half) { return f32_of(half << 16); }

WEFT_INLINE uint32_t bf16_from_f32(float value) {
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded;
}

// To the neighbour with an odd last bit when inexact: a later rounding to fewer bits is then the same as one rounding.
WEFT_INLINE float odd_f32(double value) {
    float nearest = static_cast<float>(value);
    double error = value - static_cast<double>(nearest);
    uint32_t bits = bits_of(nearest);
    uint32_t away = ((error > 0) == (value > 0)) ? 1u : ~0u;
    bool adjust = error != 0 && (bits & 1) == 0 && error == error;
    return f32_of(adjust ? bits + away : bits);
}

WEFT_INLINE double odd_sum(double a, double b) {
    double sum = a + b, part = sum - a;
    double error = (a - (sum - part)) + (b - part);
    uint64_t bits = bits_of(sum);
    uint64_t away = ((error > 0) == (sum > 0)) ? 1u : ~uint64_t{0};
    bool adjust = error != 0 && (bits & 1) == 0 && error == error && sum - sum == 0;
    return f64_of(adjust ? bits + away : bits);
}

struct F16 {
    WEFT_INLINE float load(uint32_t bits) { return f32_from_f16(bits & 0xffffu); }
    WEFT_INLINE uint32_t store(float value) { return f16_from_f32(value); }
    WEFT_INLINE float fma(float a, float b, float c) { return odd_f32(double(a) * double(b) + double(c)); }
    static constexpr uint32_t kExponent = 0x7c00u;
};
struct BF16 {
    WEFT_INLINE float load(uint32_t bits) { return f32_from_bf16(bits & 0xffffu); }
    WEFT_INLINE uint32_t store(float value) { return bf16_from_f32(value); }
    WEFT_INLINE float fma(float a, float b, float c) { return odd_f32(odd_sum(double(a) * double(b), double(c))); }
    static constexpr uint32_t kExponent = 0x7f80u;
};

// ---- minimum and maximum: a number wins over a NaN, -0 is below +0 ----

template <bool Max>
WEFT_INLINE float pick(float a, float b) {
    bool first = Max ? a > b : a < b;
    float result = first ? a : b;
    uint32_t zeros = Max ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b);
    result = a == b ? f32_of(zeros) : result;
    result = a != a ? b : result;
    result = b != b ? a : result;
    return canonical(result);
}
template <bool Max>
WEFT_INLINE double pick(double a, double b) {
    bool first = Max ? a > b : a < b;
    double result = first ? a : b;
    uint64_t zeros = Max ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b);
    result = a == b ? f64_of(zeros) : result;
    result = a != a ? b : result;
    result = b != b ? a : result;
    return result;
}

// ---- approximations, closer than the ISA asks ----

WEFT_INLINE float approx_ex2(float x) {
    float clamped = x > 160.0f ? 160.0f : x;
    clamped = clamped < -160.0f ? -160.0f : clamped;
    float whole = (clamped + 12582912.0f) - 12582912.0f;
    float f = clamped - whole;
    float p = 1.5252733804e-5f;
    p = p * f + 1.5403530394e-4f;
    p = p * f + 1.3333558146e-3f;
    p = p * f + 9.6181291076e-3f;
    p = p * f + 5.5504108665e-2f;
    p = p * f + 2.4022650696e-1f;
    p = p * f + 6.9314718056e-1f;
    p = p * f + 1.0f;
    int32_t n = static_cast<int32_t>(whole != whole ? 0.0f : whole), half = n >> 1;
    float scale1 = f32_of(static_cast<uint32_t>(half + 127) << 23),
          scale2 = f32_of(static_cast<uint32_t>(n - half + 127) << 23);
    float result = p * scale1 * scale2;
    return x != x ? f32_of(kNan32) : result;
}

WEFT_INLINE float approx_lg2(float x) {
    double wide = static_cast<double>(x);
    uint64_t bits = bits_of(wide);
    int32_t exponent = static_cast<int32_t>((bits >> 52) & 0x7ff) - 1023;
    double m = f64_of((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    bool big = m > 1.4142135623730951;
    m = big ? m * 0.5 : m;
    exponent += big ? 1 : 0;
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    float result = static_cast<float>(static_cast<double>(exponent) + 2.8853900817779268 * s * p);
    result = x == 0.0f ? -__builtin_inff() : result;
    result = x == __builtin_inff() ? x : result;
    return x < 0.0f || x != x ? f32_of(kNan32) : result;
}

// Good to 2^30; beyond, callers take the library's.
inline constexpr float kTrigonometricLimit = 1073741824.0f;

template <bool Cos>
WEFT_INLINE float approx_sincos(float x) {
    double wide = static_cast<double>(x);
    double q = (wide * 0.63661977236758134308 + 6755399441055744.0) - 6755399441055744.0;
    double r = (wide - q * 1.5707963267948966) - q * 6.123233995736766e-17;
    int64_t quadrant = static_cast<int64_t>(bits_of(q + 6755399441055744.0)) + (Cos ? 1 : 0);
    double z = r * r;
    double s = ((((2.7557319e-6 * z - 1.9841270e-4) * z + 8.3333333333e-3) * z - 0.16666666666666) * z + 1.0) * r;
    double c = ((((2.48015873e-5 * z - 1.38888889e-3) * z + 4.16666666667e-2) * z - 0.5) * z) + 1.0;
    double value = quadrant & 1 ? c : s;
    value = quadrant & 2 ? -value : value;
    float result = static_cast<float>(value);
    return x - x == 0.0f ? result : f32_of(kNan32);
}

WEFT_INLINE float approx_tanh(float x) {
    double wide = static_cast<double>(x);
    double t = wide > 20.0 ? 20.0 : wide < -20.0 ? -20.0 : wide;
    double y = t * 2.8853900817779268;
    double whole = (y + 6755399441055744.0) - 6755399441055744.0, f = (y - whole) * 0.69314718055994531;
    double p = 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    uint64_t n = bits_of(whole + 6755399441055744.0) - 0x4338000000000000u;
    double e = p * f64_of((n + 1023) << 52);
    double large = 1.0 - 2.0 / (e + 1.0), small = wide - wide * wide * wide * (1.0 / 3);
    double value = wide < 0.005 && wide > -0.005 ? small : large;
    return x != x ? f32_of(kNan32) : static_cast<float>(value);
}

}  // namespace
}  // namespace weft::engine::WEFT_ISA
