// The conversions that programs use most; null for all others, which convert_generic.cpp does. Built once per
// instruction set; see lanes.h.
#include "swgpu/engine/float_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

// A source of type T in a row of 64-bit lanes.
template <class T>
struct WideLane {
    T value;
};

template <class T>
struct Lane<WideLane<T>> {
    using Stored = uint64_t;
    WEFT_INLINE WideLane<T> load(const uint64_t* p, int i) { return {static_cast<T>(p[i])}; }
};

// Integers: cut or extend. The row of the destination may be wider than its type, and is then extended.
template <class S, class T, class DRow>
struct IntToInt {
    using D = DRow;
    using A = S;
    WEFT_INLINE DRow run(S a) {
        T value;
        if constexpr (requires { a.value; })
            value = static_cast<T>(a.value);
        else
            value = static_cast<T>(a);
        if constexpr (static_cast<T>(-1) < static_cast<T>(1)) {
            if constexpr (sizeof(DRow) == 8)
                return static_cast<DRow>(static_cast<int64_t>(value));
            else
                return static_cast<DRow>(static_cast<int32_t>(value));
        } else {
            return static_cast<DRow>(value);
        }
    }
};

template <class T>
struct IntToF32 {
    using D = float;
    using A = T;
    WEFT_INLINE float run(T a) { return static_cast<float>(a); }
};
template <class T>
struct IntToF64 {
    using D = double;
    using A = T;
    WEFT_INLINE double run(T a) { return static_cast<double>(a); }
};

template <Rounding R>
WEFT_INLINE float whole(float a) {
    if constexpr (R == Rounding::rni) return __builtin_rintf(a);
    if constexpr (R == Rounding::rzi) return __builtin_truncf(a);
    if constexpr (R == Rounding::rmi) return __builtin_floorf(a);
    return __builtin_ceilf(a);
}
template <Rounding R>
WEFT_INLINE double whole(double a) {
    if constexpr (R == Rounding::rni) return __builtin_rint(a);
    if constexpr (R == Rounding::rzi) return __builtin_trunc(a);
    if constexpr (R == Rounding::rmi) return __builtin_floor(a);
    return __builtin_ceil(a);
}

template <Rounding R, bool Ftz>
struct F32ToS32 {
    using D = int32_t;
    using A = float;
    WEFT_INLINE int32_t run(float a) {
        float w = whole<R>(flush<Ftz>(a));
        float in = w >= 2147483648.0f || w < -2147483648.0f || w != w ? 0.0f : w;
        int32_t value = static_cast<int32_t>(in);
        value = w >= 2147483648.0f ? INT32_MAX : value;
        return w < -2147483648.0f ? INT32_MIN : value;
    }
};
template <Rounding R, bool Ftz>
struct F32ToU32 {
    using D = uint32_t;
    using A = float;
    WEFT_INLINE uint32_t run(float a) {
        float w = whole<R>(flush<Ftz>(a));
        float in = w >= 4294967296.0f || w <= 0.0f || w != w ? 0.0f : w;
        uint32_t value = static_cast<uint32_t>(static_cast<int64_t>(in));
        return w >= 4294967296.0f ? ~0u : value;
    }
};
template <Rounding R>
struct F64ToS32 {
    using D = int32_t;
    using A = double;
    WEFT_INLINE int32_t run(double a) {
        double w = whole<R>(a);
        double in = w > 2147483647.0 || w < -2147483648.0 || w != w ? 0.0 : w;
        int32_t value = static_cast<int32_t>(in);
        value = w > 2147483647.0 ? INT32_MAX : value;
        return w < -2147483648.0 || w != w ? INT32_MIN : value;
    }
};

template <Rounding R, bool Ftz, bool Sat>
struct F32Whole {
    using D = float;
    using A = float;
    WEFT_INLINE float run(float a) { return finish<Ftz, Sat>(whole<R>(flush<Ftz>(a))); }
};
template <bool Ftz, bool Sat>
struct F32ToF32 {
    using D = float;
    using A = float;
    WEFT_INLINE float run(float a) { return finish<Ftz, Sat>(flush<Ftz>(a)); }
};
template <bool Ftz>
struct F32ToF64 {
    using D = double;
    using A = float;
    WEFT_INLINE double run(float a) { return static_cast<double>(flush<Ftz>(a)); }
};
template <bool Ftz, bool Sat>
struct F64ToF32 {
    using D = float;
    using A = double;
    WEFT_INLINE float run(double a) { return finish<Ftz, Sat>(static_cast<float>(a)); }
};
template <Rounding R>
struct F64Whole {
    using D = double;
    using A = double;
    WEFT_INLINE double run(double a) { return whole<R>(a); }
};
struct F16ToF32 {
    using D = float;
    using A = uint32_t;
    WEFT_INLINE float run(uint32_t a) { return canonical(f32_from_f16(a & 0xffffu)); }
};
struct BF16ToF32 {
    using D = float;
    using A = uint32_t;
    WEFT_INLINE float run(uint32_t a) { return canonical(f32_from_bf16(a & 0xffffu)); }
};
struct F32ToF16 {
    using D = uint32_t;
    using A = float;
    WEFT_INLINE uint32_t run(float a) { return f16_from_f32(a); }
};
struct F32ToBF16 {
    using D = uint32_t;
    using A = float;
    WEFT_INLINE uint32_t run(float a) { return bf16_from_f32(a); }
};

template <class S>
Handler int_to(ptx::Type to, bool wide) {
    switch (to) {
        case ptx::Type::u8:
        case ptx::Type::b8: return wide ? map1<IntToInt<S, uint8_t, uint64_t>> : map1<IntToInt<S, uint8_t, uint32_t>>;
        case ptx::Type::s8: return wide ? map1<IntToInt<S, int8_t, uint64_t>> : map1<IntToInt<S, int8_t, uint32_t>>;
        case ptx::Type::u16:
        case ptx::Type::b16:
            return wide ? map1<IntToInt<S, uint16_t, uint64_t>> : map1<IntToInt<S, uint16_t, uint32_t>>;
        case ptx::Type::s16: return wide ? map1<IntToInt<S, int16_t, uint64_t>> : map1<IntToInt<S, int16_t, uint32_t>>;
        case ptx::Type::u32:
        case ptx::Type::b32:
            return wide ? map1<IntToInt<S, uint32_t, uint64_t>> : map1<IntToInt<S, uint32_t, uint32_t>>;
        case ptx::Type::s32: return wide ? map1<IntToInt<S, int32_t, uint64_t>> : map1<IntToInt<S, int32_t, uint32_t>>;
        case ptx::Type::u64:
        case ptx::Type::b64:
        case ptx::Type::s64: return wide ? static_cast<Handler>(map1<IntToInt<S, uint64_t, uint64_t>>) : nullptr;
        default: return nullptr;
    }
}

Handler integers(const ConvertQuery& q) {
    if (q.sat || q.ftz || q.rounding != Rounding::none) return nullptr;
    bool wide = q.wide_destination;
    switch (q.from) {
        case ptx::Type::u8:
        case ptx::Type::b8: return q.wide_source ? int_to<WideLane<uint8_t>>(q.to, wide) : int_to<uint8_t>(q.to, wide);
        case ptx::Type::s8: return q.wide_source ? int_to<WideLane<int8_t>>(q.to, wide) : int_to<int8_t>(q.to, wide);
        case ptx::Type::u16:
        case ptx::Type::b16:
            return q.wide_source ? int_to<WideLane<uint16_t>>(q.to, wide) : int_to<uint16_t>(q.to, wide);
        case ptx::Type::s16: return q.wide_source ? int_to<WideLane<int16_t>>(q.to, wide) : int_to<int16_t>(q.to, wide);
        case ptx::Type::u32:
        case ptx::Type::b32:
            return q.wide_source ? int_to<WideLane<uint32_t>>(q.to, wide) : int_to<uint32_t>(q.to, wide);
        case ptx::Type::s32: return q.wide_source ? int_to<WideLane<int32_t>>(q.to, wide) : int_to<int32_t>(q.to, wide);
        case ptx::Type::u64:
        case ptx::Type::b64: return int_to<uint64_t>(q.to, wide);
        case ptx::Type::s64: return int_to<int64_t>(q.to, wide);
        default: return nullptr;
    }
}

Handler int_to_float(const ConvertQuery& q) {
    if (q.rounding != Rounding::rn || q.sat || q.wide_source != (ptx::size_of(q.from) == 8)) return nullptr;
    bool single = q.to == ptx::Type::f32;
    switch (q.from) {
        case ptx::Type::u8: return single ? static_cast<Handler>(map1<IntToF32<uint8_t>>) : map1<IntToF64<uint8_t>>;
        case ptx::Type::s8: return single ? static_cast<Handler>(map1<IntToF32<int8_t>>) : map1<IntToF64<int8_t>>;
        case ptx::Type::u16: return single ? static_cast<Handler>(map1<IntToF32<uint16_t>>) : map1<IntToF64<uint16_t>>;
        case ptx::Type::s16: return single ? static_cast<Handler>(map1<IntToF32<int16_t>>) : map1<IntToF64<int16_t>>;
        case ptx::Type::u32: return single ? static_cast<Handler>(map1<IntToF32<uint32_t>>) : map1<IntToF64<uint32_t>>;
        case ptx::Type::s32: return single ? static_cast<Handler>(map1<IntToF32<int32_t>>) : map1<IntToF64<int32_t>>;
        case ptx::Type::u64: return single ? static_cast<Handler>(map1<IntToF32<uint64_t>>) : map1<IntToF64<uint64_t>>;
        case ptx::Type::s64: return single ? static_cast<Handler>(map1<IntToF32<int64_t>>) : map1<IntToF64<int64_t>>;
        default: return nullptr;
    }
}

template <template <Rounding> class F>
Handler whole_of(Rounding rounding) {
    switch (rounding) {
        case Rounding::rni: return map1<F<Rounding::rni>>;
        case Rounding::rzi: return map1<F<Rounding::rzi>>;
        case Rounding::rmi: return map1<F<Rounding::rmi>>;
        case Rounding::rpi: return map1<F<Rounding::rpi>>;
        default: return nullptr;
    }
}
template <bool Ftz>
struct With {
    template <Rounding R>
    using S32 = F32ToS32<R, Ftz>;
    template <Rounding R>
    using U32 = F32ToU32<R, Ftz>;
    template <Rounding R>
    using Whole = F32Whole<R, Ftz, false>;
    template <Rounding R>
    using WholeSat = F32Whole<R, Ftz, true>;
};

Handler from_f32(const ConvertQuery& q) {
    if (q.relu) return nullptr;
    switch (q.to) {
        case ptx::Type::s32:
            return q.ftz ? whole_of<With<true>::S32>(q.rounding) : whole_of<With<false>::S32>(q.rounding);
        case ptx::Type::u32:
            return q.ftz ? whole_of<With<true>::U32>(q.rounding) : whole_of<With<false>::U32>(q.rounding);
        case ptx::Type::f32:
            if (q.rounding == Rounding::none) {
                if (q.ftz) return q.sat ? map1<F32ToF32<true, true>> : map1<F32ToF32<true, false>>;
                return q.sat ? map1<F32ToF32<false, true>> : map1<F32ToF32<false, false>>;
            }
            if (q.ftz)
                return q.sat ? whole_of<With<true>::WholeSat>(q.rounding) : whole_of<With<true>::Whole>(q.rounding);
            return q.sat ? whole_of<With<false>::WholeSat>(q.rounding) : whole_of<With<false>::Whole>(q.rounding);
        case ptx::Type::f64:
            if (q.rounding != Rounding::none || q.sat) return nullptr;
            return q.ftz ? map1<F32ToF64<true>> : map1<F32ToF64<false>>;
        case ptx::Type::f16: return q.rounding == Rounding::rn && !q.ftz && !q.sat ? map1<F32ToF16> : nullptr;
        case ptx::Type::bf16: return q.rounding == Rounding::rn && !q.ftz && !q.sat ? map1<F32ToBF16> : nullptr;
        default: return nullptr;
    }
}

Handler from_f64(const ConvertQuery& q) {
    switch (q.to) {
        case ptx::Type::s32: return whole_of<F64ToS32>(q.rounding);
        case ptx::Type::f32:
            if (q.rounding != Rounding::rn) return nullptr;
            if (q.ftz) return q.sat ? map1<F64ToF32<true, true>> : map1<F64ToF32<true, false>>;
            return q.sat ? map1<F64ToF32<false, true>> : map1<F64ToF32<false, false>>;
        case ptx::Type::f64: return q.sat ? nullptr : whole_of<F64Whole>(q.rounding);
        default: return nullptr;
    }
}

}  // namespace

Handler select_convert(const ConvertQuery& q) {
    bool int_to_int =
        (ptx::is_integer(q.to) || ptx::is_bits(q.to)) && (ptx::is_integer(q.from) || ptx::is_bits(q.from));
    if (int_to_int) return integers(q);
    if (q.wide_destination != (ptx::size_of(q.to) == 8)) return nullptr;
    if (ptx::is_integer(q.from) && (q.to == ptx::Type::f32 || q.to == ptx::Type::f64)) return int_to_float(q);
    if (q.wide_source != (ptx::size_of(q.from) == 8)) return nullptr;
    if (q.from == ptx::Type::f32) return from_f32(q);
    if (q.from == ptx::Type::f64) return from_f64(q);
    bool widens = q.to == ptx::Type::f32 && q.rounding == Rounding::none && !q.ftz && !q.sat;
    if (q.from == ptx::Type::f16 && widens) return map1<F16ToF32>;
    if (q.from == ptx::Type::bf16 && widens) return map1<BF16ToF32>;
    return nullptr;
}

}  // namespace weft::engine::WEFT_ISA
