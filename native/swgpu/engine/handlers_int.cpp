// Integer arithmetic. Built once per instruction set; see lanes.h.
#include "swgpu/engine/int_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <class T>
WEFT_INLINE T multiply_high(T a, T b) {
    if constexpr (sizeof(T) == 8) {
        if constexpr (kSigned<T>) {
            return static_cast<T>((static_cast<__int128>(a) * b) >> 64);
        } else {
            return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> 64);
        }
    } else {
        return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> kBits<T>);
    }
}

template <class T>
struct Mov : Same1<T> {
    WEFT_INLINE T run(T a) { return a; }
};
template <class T>
struct Add : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return static_cast<T>(Uns<T>(a) + Uns<T>(b)); }
};
template <class T>
struct Sub : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return static_cast<T>(Uns<T>(a) - Uns<T>(b)); }
};
template <class T>
struct MulLo : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
};
template <>
struct MulLo<uint32_t> : Same2<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) { return a * b; }
};
template <class T>
struct MulHi : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return multiply_high(a, b); }
};
template <class T>
struct MulWide {
    using D = Wider<T>;
    using A = T;
    using B = T;
    WEFT_INLINE D run(T a, T b) { return static_cast<D>(a) * static_cast<D>(b); }
};
template <class T>
struct MadLo : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(MulLo<T>::run(a, b), c); }
};
template <class T>
struct MadHi : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(multiply_high(a, b), c); }
};
struct MadHiSat : Same3<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b, int32_t c) {
        int64_t sum = int64_t{multiply_high(a, b)} + c;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};
template <class T>
struct MadWide {
    using D = Wider<T>;
    using A = T;
    using B = T;
    using C = D;
    WEFT_INLINE D run(T a, T b, D c) { return static_cast<D>(Uns<D>(MulWide<T>::run(a, b)) + Uns<D>(c)); }
};
WEFT_INLINE int64_t signed24(int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8; }
WEFT_INLINE uint64_t product24(uint32_t a, uint32_t b) { return uint64_t{a & 0xffffff} * (b & 0xffffff); }
WEFT_INLINE int64_t product24(int32_t a, int32_t b) { return signed24(a) * signed24(b); }
template <class T>
struct Mul24Lo : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return static_cast<T>(product24(a, b)); }
};
template <class T>
struct Mul24Hi : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return static_cast<T>(product24(a, b) >> 16); }
};
template <class T>
struct Mad24Lo : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(Mul24Lo<T>::run(a, b), c); }
};
template <class T>
struct Mad24Hi : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(Mul24Hi<T>::run(a, b), c); }
};
struct Mad24HiSat : Same3<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b, int32_t c) {
        int64_t sum = int64_t{Mul24Hi<int32_t>::run(a, b)} + c;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};
template <class T>
struct Sad : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(c, a < b ? Sub<T>::run(b, a) : Sub<T>::run(a, b)); }
};
// Division by zero gives all ones and a remainder of the dividend, as GPUs do; the ISA leaves it open.
template <class T>
struct Div : Same2<T> {
    WEFT_INLINE T run(T a, T b) {
        if (b == 0) return static_cast<T>(~Uns<T>{0});
        if constexpr (kSigned<T>) {
            if (b == -1) return static_cast<T>(Uns<T>{0} - Uns<T>(a));
        }
        return static_cast<T>(a / b);
    }
};
template <class T>
struct Rem : Same2<T> {
    WEFT_INLINE T run(T a, T b) {
        if (b == 0) return a;
        if constexpr (kSigned<T>) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
};
template <class T>
struct Abs : Same1<T> {
    WEFT_INLINE T run(T a) { return a < 0 ? static_cast<T>(Uns<T>{0} - Uns<T>(a)) : a; }
};
template <class T>
struct Neg : Same1<T> {
    WEFT_INLINE T run(T a) { return static_cast<T>(Uns<T>{0} - Uns<T>(a)); }
};
template <class T>
struct Min : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return a < b ? b : a; }
};
struct MinRelu : Same2<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b) {
        int32_t m = a < b ? a : b;
        return m < 0 ? 0 : m;
    }
};
struct MaxRelu : Same2<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b) {
        int32_t m = a < b ? b : a;
        return m < 0 ? 0 : m;
    }
};
struct AddSat : Same2<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b) {
        int64_t sum = int64_t{a} + b;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};
struct SubSat : Same2<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b) {
        int64_t sum = int64_t{a} - b;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};

// Pairs of 16-bit integers.
template <class F>
struct Pair2 : Same2<uint32_t> {
    using T = typename F::A;
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        uint32_t low = static_cast<uint16_t>(F::run(static_cast<T>(a), static_cast<T>(b)));
        return low |
               static_cast<uint32_t>(static_cast<uint16_t>(F::run(static_cast<T>(a >> 16), static_cast<T>(b >> 16))))
                   << 16;
    }
};
struct Min16Relu : Same2<int16_t> {
    WEFT_INLINE int16_t run(int16_t a, int16_t b) {
        int16_t m = a < b ? a : b;
        return m < 0 ? 0 : m;
    }
};
struct Max16Relu : Same2<int16_t> {
    WEFT_INLINE int16_t run(int16_t a, int16_t b) {
        int16_t m = a < b ? b : a;
        return m < 0 ? 0 : m;
    }
};

template <template <class> class F, template <class H> class Map>
Handler wide(ptx::Type type) {
    switch (type) {
        case ptx::Type::u16: return Map<F<uint16_t>>::handler;
        case ptx::Type::s16: return Map<F<int16_t>>::handler;
        case ptx::Type::u32: return Map<F<uint32_t>>::handler;
        case ptx::Type::s32: return Map<F<int32_t>>::handler;
        default: return nullptr;
    }
}
template <class F>
struct Use2 {
    static constexpr Handler handler = map2<F>;
};
template <class F>
struct Use3 {
    static constexpr Handler handler = map3<F>;
};
template <template <class> class F, template <class H> class Map>
Handler words(ptx::Type type) {
    if (type == ptx::Type::u32) return Map<F<uint32_t>>::handler;
    if (type == ptx::Type::s32) return Map<F<int32_t>>::handler;
    return nullptr;
}

template <template <class> class F>
Handler minmax_pair(ptx::Type type) {
    if (type == ptx::Type::u16x2) return map2<Pair2<F<uint16_t>>>;
    if (type == ptx::Type::s16x2) return map2<Pair2<F<int16_t>>>;
    return nullptr;
}

Handler simple(const ArithmeticQuery& q) {
    ptx::Type t = q.type;
    switch (q.operation) {
        case Operation::mov: return bits1<Mov>(t);
        case Operation::add:
            if (q.sat) return t == ptx::Type::s32 ? map2<AddSat> : nullptr;
            if (t == ptx::Type::u16x2 || t == ptx::Type::s16x2) return map2<Pair2<Add<uint16_t>>>;
            return bits2<Add>(t);
        case Operation::sub:
            if (q.sat) return t == ptx::Type::s32 ? map2<SubSat> : nullptr;
            return bits2<Sub>(t);
        case Operation::mul_lo: return bits2<MulLo>(t);
        case Operation::mul_hi: return all2<MulHi>(t);
        case Operation::mul_wide: return wide<MulWide, Use2>(t);
        case Operation::mad_lo: return bits3<MadLo>(t);
        case Operation::mad_hi:
            if (q.sat) return t == ptx::Type::s32 ? map3<MadHiSat> : nullptr;
            return all3<MadHi>(t);
        case Operation::mad_wide: return wide<MadWide, Use3>(t);
        case Operation::mul24_lo: return words<Mul24Lo, Use2>(t);
        case Operation::mul24_hi: return words<Mul24Hi, Use2>(t);
        case Operation::mad24_lo: return words<Mad24Lo, Use3>(t);
        case Operation::mad24_hi:
            if (q.sat) return t == ptx::Type::s32 ? map3<Mad24HiSat> : nullptr;
            return words<Mad24Hi, Use3>(t);
        case Operation::sad: return all3<Sad>(t);
        case Operation::div: return all2<Div>(t);
        case Operation::rem: return all2<Rem>(t);
        case Operation::abs: return signed1<Abs>(t);
        case Operation::neg: return signed1<Neg>(t);
        case Operation::min:
            if (q.relu)
                return t == ptx::Type::s32 ? map2<MinRelu> : t == ptx::Type::s16x2 ? map2<Pair2<Min16Relu>> : nullptr;
            return ptx::is_integer(t) ? all2<Min>(t) : minmax_pair<Min>(t);
        case Operation::max:
            if (q.relu)
                return t == ptx::Type::s32 ? map2<MaxRelu> : t == ptx::Type::s16x2 ? map2<Pair2<Max16Relu>> : nullptr;
            return ptx::is_integer(t) ? all2<Max>(t) : minmax_pair<Max>(t);
        default: return nullptr;
    }
}

}  // namespace

Handler select_integer(const ArithmeticQuery& query) {
    if (Handler handler = simple(query)) return handler;
    if (Handler handler = select_bits(query)) return handler;
    return select_moves(query);
}

}  // namespace weft::engine::WEFT_ISA
