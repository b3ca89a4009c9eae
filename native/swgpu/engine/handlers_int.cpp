// Integer, logic, shift and bit-field instructions. Built once per instruction set; see lanes.h.
#include "swgpu/engine/lanes.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <class T>
struct Unsigned;
template <> struct Unsigned<uint16_t> { using type = uint16_t; };
template <> struct Unsigned<int16_t> { using type = uint16_t; };
template <> struct Unsigned<uint32_t> { using type = uint32_t; };
template <> struct Unsigned<int32_t> { using type = uint32_t; };
template <> struct Unsigned<uint64_t> { using type = uint64_t; };
template <> struct Unsigned<uint8_t> { using type = uint8_t; };
template <> struct Unsigned<int64_t> { using type = uint64_t; };
template <class T>
using Uns = typename Unsigned<T>::type;

template <class T>
struct WiderType;
template <> struct WiderType<uint16_t> { using type = uint32_t; };
template <> struct WiderType<int16_t> { using type = int32_t; };
template <> struct WiderType<uint32_t> { using type = uint64_t; };
template <> struct WiderType<int32_t> { using type = int64_t; };
template <class T>
using Wider = typename WiderType<T>::type;

template <class T>
inline constexpr int kBits = static_cast<int>(sizeof(T) * 8);
template <class T>
inline constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(1);

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
struct Same1 { using D = T; using A = T; };
template <class T>
struct Same2 { using D = T; using A = T; using B = T; };
template <class T>
struct Same3 { using D = T; using A = T; using B = T; using C = T; };

template <class T> struct Mov : Same1<T> { WEFT_INLINE T run(T a) { return a; } };
template <class T> struct Add : Same2<T> { WEFT_INLINE T run(T a, T b) { return static_cast<T>(Uns<T>(a) + Uns<T>(b)); } };
template <class T> struct Sub : Same2<T> { WEFT_INLINE T run(T a, T b) { return static_cast<T>(Uns<T>(a) - Uns<T>(b)); } };
template <class T> struct MulLo : Same2<T> { WEFT_INLINE T run(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); } };
template <> struct MulLo<uint32_t> : Same2<uint32_t> { WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) { return a * b; } };
template <class T> struct MulHi : Same2<T> { WEFT_INLINE T run(T a, T b) { return multiply_high(a, b); } };
template <class T> struct MulWide {
    using D = Wider<T>; using A = T; using B = T;
    WEFT_INLINE D run(T a, T b) { return static_cast<D>(a) * static_cast<D>(b); }
};
template <class T> struct MadLo : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(MulLo<T>::run(a, b), c); }
};
template <class T> struct MadHi : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(multiply_high(a, b), c); }
};
struct MadHiSat : Same3<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b, int32_t c) {
        int64_t sum = int64_t{multiply_high(a, b)} + c;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};
template <class T> struct MadWide {
    using D = Wider<T>; using A = T; using B = T; using C = D;
    WEFT_INLINE D run(T a, T b, D c) { return static_cast<D>(Uns<D>(MulWide<T>::run(a, b)) + Uns<D>(c)); }
};
WEFT_INLINE int64_t signed24(int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8; }
WEFT_INLINE uint64_t product24(uint32_t a, uint32_t b) { return uint64_t{a & 0xffffff} * (b & 0xffffff); }
WEFT_INLINE int64_t product24(int32_t a, int32_t b) { return signed24(a) * signed24(b); }
template <class T> struct Mul24Lo : Same2<T> { WEFT_INLINE T run(T a, T b) { return static_cast<T>(product24(a, b)); } };
template <class T> struct Mul24Hi : Same2<T> { WEFT_INLINE T run(T a, T b) { return static_cast<T>(product24(a, b) >> 16); } };
template <class T> struct Mad24Lo : Same3<T> { WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(Mul24Lo<T>::run(a, b), c); } };
template <class T> struct Mad24Hi : Same3<T> { WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(Mul24Hi<T>::run(a, b), c); } };
struct Mad24HiSat : Same3<int32_t> {
    WEFT_INLINE int32_t run(int32_t a, int32_t b, int32_t c) {
        int64_t sum = int64_t{Mul24Hi<int32_t>::run(a, b)} + c;
        return static_cast<int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
};
template <class T> struct Sad : Same3<T> {
    WEFT_INLINE T run(T a, T b, T c) { return Add<T>::run(c, a < b ? Sub<T>::run(b, a) : Sub<T>::run(a, b)); }
};
// Division by zero gives all ones and a remainder of the dividend, as GPUs do; the ISA leaves it open.
template <class T> struct Div : Same2<T> {
    WEFT_INLINE T run(T a, T b) {
        if (b == 0) return static_cast<T>(~Uns<T>{0});
        if constexpr (kSigned<T>) {
            if (b == -1) return static_cast<T>(Uns<T>{0} - Uns<T>(a));
        }
        return static_cast<T>(a / b);
    }
};
template <class T> struct Rem : Same2<T> {
    WEFT_INLINE T run(T a, T b) {
        if (b == 0) return a;
        if constexpr (kSigned<T>) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
};
template <class T> struct Abs : Same1<T> { WEFT_INLINE T run(T a) { return a < 0 ? static_cast<T>(Uns<T>{0} - Uns<T>(a)) : a; } };
template <class T> struct Neg : Same1<T> { WEFT_INLINE T run(T a) { return static_cast<T>(Uns<T>{0} - Uns<T>(a)); } };
template <class T> struct Min : Same2<T> { WEFT_INLINE T run(T a, T b) { return a < b ? a : b; } };
template <class T> struct Max : Same2<T> { WEFT_INLINE T run(T a, T b) { return a < b ? b : a; } };
struct MinRelu : Same2<int32_t> { WEFT_INLINE int32_t run(int32_t a, int32_t b) { int32_t m = a < b ? a : b; return m < 0 ? 0 : m; } };
struct MaxRelu : Same2<int32_t> { WEFT_INLINE int32_t run(int32_t a, int32_t b) { int32_t m = a < b ? b : a; return m < 0 ? 0 : m; } };
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
template <class F> struct Pair2 : Same2<uint32_t> {
    using T = typename F::A;
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        uint32_t low = static_cast<uint16_t>(F::run(static_cast<T>(a), static_cast<T>(b)));
        return low | static_cast<uint32_t>(static_cast<uint16_t>(F::run(static_cast<T>(a >> 16), static_cast<T>(b >> 16)))) << 16;
    }
};
struct Min16Relu : Same2<int16_t> { WEFT_INLINE int16_t run(int16_t a, int16_t b) { int16_t m = a < b ? a : b; return m < 0 ? 0 : m; } };
struct Max16Relu : Same2<int16_t> { WEFT_INLINE int16_t run(int16_t a, int16_t b) { int16_t m = a < b ? b : a; return m < 0 ? 0 : m; } };

template <class T> struct Popc { using D = uint32_t; using A = T;
    WEFT_INLINE D run(T a) { return static_cast<D>(sizeof(T) == 8 ? __builtin_popcountll(a) : __builtin_popcount(static_cast<uint32_t>(a))); } };
template <class T> struct Clz { using D = uint32_t; using A = T;
    WEFT_INLINE D run(T a) {
        if (a == 0) return kBits<T>;
        return static_cast<D>(sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz(static_cast<uint32_t>(a)));
    } };
template <class T> struct Bfind { using D = uint32_t; using A = T;
    WEFT_INLINE D run(T value) {
        Uns<T> a = static_cast<Uns<T>>(value);
        if (kSigned<T> && value < 0) a = ~a;
        return a == 0 ? ~0u : static_cast<D>(kBits<T> - 1) - Clz<Uns<T>>::run(a);
    } };
template <class T> struct BfindShift { using D = uint32_t; using A = T;
    WEFT_INLINE D run(T a) { uint32_t bit = Bfind<T>::run(a); return bit == ~0u ? bit : static_cast<uint32_t>(kBits<T> - 1) - bit; } };
template <class T> struct Brev : Same1<T> {
    WEFT_INLINE T run(T a) {
        uint64_t v = static_cast<uint64_t>(a) << (64 - kBits<T>);
        v = ((v >> 1) & 0x5555555555555555u) | ((v & 0x5555555555555555u) << 1);
        v = ((v >> 2) & 0x3333333333333333u) | ((v & 0x3333333333333333u) << 2);
        v = ((v >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((v & 0x0f0f0f0f0f0f0f0fu) << 4);
        return static_cast<T>(__builtin_bswap64(v));
    } };
// Position and length are the low 8 bits; the field may reach past the top, where the sign (or 0) continues.
template <class T> struct Bfe { using D = T; using A = T; using B = uint32_t; using C = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b, uint32_t c) {
        uint32_t pos = b & 0xff, len = c & 0xff, top = static_cast<uint32_t>(kBits<T>) - 1;
        if (len == 0) return 0;
        uint32_t end = pos + len - 1 < top ? pos + len - 1 : top;
        Uns<T> sign = kSigned<T> ? static_cast<Uns<T>>((static_cast<Uns<T>>(a) >> end) & 1) : Uns<T>{0};
        Uns<T> field = pos > top ? Uns<T>{0} : static_cast<Uns<T>>(static_cast<Uns<T>>(a) >> pos);
        uint32_t width = pos > top ? 0 : len < static_cast<uint32_t>(kBits<T>) - pos ? len : static_cast<uint32_t>(kBits<T>) - pos;
        Uns<T> keep = width > top ? ~Uns<T>{0} : static_cast<Uns<T>>((Uns<T>{1} << width) - 1);
        return static_cast<T>((field & keep) | (sign ? static_cast<Uns<T>>(~keep) : Uns<T>{0}));
    } };
template <class T> struct Bfi {
    WEFT_INLINE T run(T a, T b, uint32_t c, uint32_t d) {
        uint32_t pos = c & 0xff, len = d & 0xff;
        if (pos >= static_cast<uint32_t>(kBits<T>) || len == 0) return b;
        T keep = len >= static_cast<uint32_t>(kBits<T>) ? ~T{0} : static_cast<T>((T{1} << len) - 1);
        keep = static_cast<T>(keep << pos);
        return static_cast<T>((b & ~keep) | ((a << pos) & keep));
    } };
// bfi has four sources; the fourth is Op::e.
template <class T>
const Op* bfi(Context& context, const Op* op, uint32_t mask) {
    const T* a = row<const T>(context, op->a);
    const T* b = row<const T>(context, op->b);
    const uint32_t* c = row<const uint32_t>(context, op->c);
    const uint32_t* e = row<const uint32_t>(context, op->e);
    alignas(64) T result[32];
    for (int i = 0; i < 32; ++i) result[i] = Bfi<T>::run(a[i], b[i], c[i], e[i]);
    blend(row<T>(context, op->d), result, mask);
    return op + 1;
}
struct Fns { using D = uint32_t; using A = uint32_t; using B = uint32_t; using C = int32_t;
    WEFT_INLINE D run(uint32_t mask, uint32_t base, int32_t offset) {
        if (base > 31) return ~0u;
        if (offset == 0) return (mask >> base) & 1 ? base : ~0u;
        int step = offset > 0 ? 1 : -1;
        int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
        for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
            if (((mask >> at) & 1) && --left == 0) return static_cast<D>(at);
        }
        return ~0u;
    } };
template <class A4, class B4> struct Dp4a { using D = uint32_t; using A = uint32_t; using B = uint32_t; using C = uint32_t;
    WEFT_INLINE D run(uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 32; i += 8) c += static_cast<uint32_t>(int32_t{static_cast<A4>(a >> i)} * int32_t{static_cast<B4>(b >> i)});
        return c;
    } };
template <class A2, class B4, int Shift> struct Dp2a { using D = uint32_t; using A = uint32_t; using B = uint32_t; using C = uint32_t;
    WEFT_INLINE D run(uint32_t a, uint32_t b, uint32_t c) {
        c += static_cast<uint32_t>(int32_t{static_cast<A2>(a)} * int32_t{static_cast<B4>(b >> Shift)});
        return c + static_cast<uint32_t>(int32_t{static_cast<A2>(a >> 16)} * int32_t{static_cast<B4>(b >> (Shift + 8))});
    } };
template <class T, bool Wrap> struct Szext { using D = T; using A = T; using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) {
        uint32_t n = Wrap ? b & 31 : b;
        if (n > 31) return a;
        if (n == 0) return 0;
        return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - n)) >> (32 - n));
    } };
template <bool Wrap> struct Bmsk : Same2<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        uint32_t pos = Wrap ? a & 31 : a, len = Wrap ? b & 31 : b;
        if (pos > 31 || len == 0) return 0;
        uint32_t ones = len > 31 ? ~0u : (1u << len) - 1;
        return ones << pos;
    } };
struct Prmt : Same3<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        uint64_t both = a | uint64_t{b} << 32;
        uint32_t result = 0;
        for (int i = 0; i < 4; ++i) {
            uint32_t select = (c >> (4 * i)) & 15;
            uint32_t byte = static_cast<uint32_t>(both >> (8 * (select & 7))) & 0xff;
            if (select & 8) byte = byte & 0x80 ? 0xff : 0;
            result |= byte << (8 * i);
        }
        return result;
    } };
// The named modes of prmt: which byte of {b,a} goes to each place, per value of c[1:0].
template <Operation Mode> struct PrmtMode : Same3<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        uint64_t both = a | uint64_t{b} << 32;
        uint32_t n = c & 3, result = 0;
        for (uint32_t i = 0; i < 4; ++i) {
            uint32_t from = 0;
            if (Mode == Operation::prmt_f4e) from = (n + i) & 7;
            if (Mode == Operation::prmt_b4e) from = (n + 8 - i) & 7;
            if (Mode == Operation::prmt_rc8) from = n;
            if (Mode == Operation::prmt_ecl) from = i > n ? i : n;
            if (Mode == Operation::prmt_ecr) from = i < n ? i : n;
            if (Mode == Operation::prmt_rc16) from = (n & 1) * 2 + (i & 1);
            result |= (static_cast<uint32_t>(both >> (8 * from)) & 0xff) << (8 * i);
        }
        return result;
    } };
template <class T> struct And : Same2<T> { WEFT_INLINE T run(T a, T b) { return a & b; } };
template <class T> struct Or : Same2<T> { WEFT_INLINE T run(T a, T b) { return a | b; } };
template <class T> struct Xor : Same2<T> { WEFT_INLINE T run(T a, T b) { return a ^ b; } };
template <class T> struct Not : Same1<T> { WEFT_INLINE T run(T a) { return static_cast<T>(~a); } };
template <class T> struct Cnot : Same1<T> { WEFT_INLINE T run(T a) { return a == 0; } };
template <class T> struct Shl { using D = T; using A = T; using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) { return b >= static_cast<uint32_t>(kBits<T>) ? T{0} : static_cast<T>(a << (b & 63)); } };
template <class T> struct Shr { using D = T; using A = T; using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) {
        uint32_t last = static_cast<uint32_t>(kBits<T>) - 1;
        if constexpr (kSigned<T>) return static_cast<T>(a >> (b > last ? last : b));
        return b > last ? T{0} : static_cast<T>(a >> (b & 63));
    } };
template <bool Left, bool Wrap> struct Shf : Same3<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t n = Wrap ? c & 31 : c > 32 ? 32 : c;
        uint64_t both = a | uint64_t{b} << 32;
        return static_cast<uint32_t>(Left ? (both << n) >> 32 : both >> n);
    } };
template <class T> struct Slct { using D = T; using A = T; using B = T; using C = int32_t;
    WEFT_INLINE T run(T a, T b, int32_t c) { return c >= 0 ? a : b; } };
template <class T, bool Ftz> struct SlctF { using D = T; using A = T; using B = T; using C = uint32_t;
    WEFT_INLINE T run(T a, T b, uint32_t c) {
        bool zero = Ftz ? (c & 0x7f800000u) == 0 : (c & 0x7fffffffu) == 0;
        bool take = zero || !(c >> 31);
        return take && (c & 0x7fffffffu) <= 0x7f800000u ? a : b;
    } };

// The table of lop3 is Op::imm.
const Op* lop3(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* a = row<const uint32_t>(context, op->a);
    const uint32_t* b = row<const uint32_t>(context, op->b);
    const uint32_t* c = row<const uint32_t>(context, op->c);
    uint32_t keep[8];
    for (int k = 0; k < 8; ++k) keep[k] = (op->imm >> k) & 1 ? ~0u : 0;
    alignas(64) uint32_t result[32];
    for (int i = 0; i < 32; ++i) {
        uint32_t x = a[i], y = b[i], z = c[i];
        result[i] = (keep[0] & ~x & ~y & ~z) | (keep[1] & ~x & ~y & z) | (keep[2] & ~x & y & ~z) | (keep[3] & ~x & y & z) |
                    (keep[4] & x & ~y & ~z) | (keep[5] & x & ~y & z) | (keep[6] & x & y & ~z) | (keep[7] & x & y & z);
    }
    blend(row<uint32_t>(context, op->d), result, mask);
    return op + 1;
}

template <class T>
const Op* selp(Context& context, const Op* op, uint32_t mask) {
    const T* a = row<const T>(context, op->a);
    const T* b = row<const T>(context, op->b);
    uint32_t choose = predicate(context, op->c);
    alignas(64) T result[32];
    for (int i = 0; i < 32; ++i) result[i] = b[i];
    blend(result, a, choose);
    blend(row<T>(context, op->d), result, mask);
    return op + 1;
}

// Carry chains: the carry is a hidden predicate, Op::c (or Op::e of mad) in and Op::imm (a reference) out.
template <class T, Operation Kind>
const Op* carry(Context& context, const Op* op, uint32_t mask) {
    constexpr bool kMad = Kind == Operation::mad_lo_cc || Kind == Operation::mad_hi_cc || Kind == Operation::madc_lo || Kind == Operation::madc_hi;
    constexpr bool kIn = Kind == Operation::addc || Kind == Operation::subc || Kind == Operation::madc_lo || Kind == Operation::madc_hi;
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
            if (Kind == Operation::mad_lo_cc || Kind == Operation::madc_lo) x = x * y;
            else if (sizeof(T) == 8) x = is_signed ? static_cast<T>((static_cast<__int128>(static_cast<S>(x)) * static_cast<S>(y)) >> 64) : static_cast<T>((static_cast<unsigned __int128>(x) * y) >> 64);
            else x = is_signed ? static_cast<T>((int64_t{static_cast<int32_t>(x)} * static_cast<int32_t>(y)) >> 32) : static_cast<T>((uint64_t{x} * y) >> 32);
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
        for (int i = 0; i < 32; ++i) result[i] |= static_cast<Whole>(static_cast<Whole>(Lane<Part>::load(from, i)) << (k * kBits<Part>));
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

template <template <class> class F>
Handler all1(ptx::Type type) {
    switch (type) {
        case ptx::Type::u16: case ptx::Type::b16: return map1<F<uint16_t>>;
        case ptx::Type::s16: return map1<F<int16_t>>;
        case ptx::Type::u32: case ptx::Type::b32: return map1<F<uint32_t>>;
        case ptx::Type::s32: return map1<F<int32_t>>;
        case ptx::Type::u64: case ptx::Type::b64: return map1<F<uint64_t>>;
        case ptx::Type::s64: return map1<F<int64_t>>;
        default: return nullptr;
    }
}
template <template <class> class F>
Handler signed1(ptx::Type type) {
    switch (type) {
        case ptx::Type::s16: return map1<F<int16_t>>;
        case ptx::Type::s32: return map1<F<int32_t>>;
        case ptx::Type::s64: return map1<F<int64_t>>;
        default: return nullptr;
    }
}
template <template <class> class F>
Handler all2(ptx::Type type) {
    switch (type) {
        case ptx::Type::u16: return map2<F<uint16_t>>;
        case ptx::Type::s16: return map2<F<int16_t>>;
        case ptx::Type::u32: return map2<F<uint32_t>>;
        case ptx::Type::s32: return map2<F<int32_t>>;
        case ptx::Type::u64: return map2<F<uint64_t>>;
        case ptx::Type::s64: return map2<F<int64_t>>;
        default: return nullptr;
    }
}
// The sign does not matter to the result.
template <template <class> class F>
Handler bits2(ptx::Type type) {
    switch (ptx::size_of(type)) {
        case 2: return map2<F<uint16_t>>;
        case 4: return map2<F<uint32_t>>;
        case 8: return map2<F<uint64_t>>;
        default: return nullptr;
    }
}
template <template <class> class F>
Handler bits1(ptx::Type type) {
    switch (ptx::size_of(type)) {
        case 2: return map1<F<uint16_t>>;
        case 4: return map1<F<uint32_t>>;
        case 8: return map1<F<uint64_t>>;
        default: return nullptr;
    }
}
template <template <class> class F>
Handler bits3(ptx::Type type) {
    switch (ptx::size_of(type)) {
        case 2: return map3<F<uint16_t>>;
        case 4: return map3<F<uint32_t>>;
        case 8: return map3<F<uint64_t>>;
        default: return nullptr;
    }
}
template <template <class> class F>
Handler all3(ptx::Type type) {
    switch (type) {
        case ptx::Type::u16: return map3<F<uint16_t>>;
        case ptx::Type::s16: return map3<F<int16_t>>;
        case ptx::Type::u32: return map3<F<uint32_t>>;
        case ptx::Type::s32: return map3<F<int32_t>>;
        case ptx::Type::u64: return map3<F<uint64_t>>;
        case ptx::Type::s64: return map3<F<int64_t>>;
        default: return nullptr;
    }
}
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
template <class F> struct Use2 { static constexpr Handler handler = map2<F>; };
template <class F> struct Use3 { static constexpr Handler handler = map3<F>; };
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

template <Operation Kind>
Handler carry_of(ptx::Type type) {
    if (ptx::size_of(type) == 4) return carry<uint32_t, Kind>;
    if (ptx::size_of(type) == 8) return carry<uint64_t, Kind>;
    return nullptr;
}

template <template <class, class> class F>
Handler dot4(const ArithmeticQuery& q) {
    bool a = q.type == ptx::Type::s32, b = q.type_b == ptx::Type::s32;
    if (a) return b ? map3<F<int8_t, int8_t>> : map3<F<int8_t, uint8_t>>;
    return b ? map3<F<uint8_t, int8_t>> : map3<F<uint8_t, uint8_t>>;
}
template <int Shift>
Handler dot2(const ArithmeticQuery& q) {
    bool a = q.type == ptx::Type::s32, b = q.type_b == ptx::Type::s32;
    if (a) return b ? map3<Dp2a<int16_t, int8_t, Shift>> : map3<Dp2a<int16_t, uint8_t, Shift>>;
    return b ? map3<Dp2a<uint16_t, int8_t, Shift>> : map3<Dp2a<uint16_t, uint8_t, Shift>>;
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
            if (q.relu) return t == ptx::Type::s32 ? map2<MinRelu> : t == ptx::Type::s16x2 ? map2<Pair2<Min16Relu>> : nullptr;
            return ptx::is_integer(t) ? all2<Min>(t) : minmax_pair<Min>(t);
        case Operation::max:
            if (q.relu) return t == ptx::Type::s32 ? map2<MaxRelu> : t == ptx::Type::s16x2 ? map2<Pair2<Max16Relu>> : nullptr;
            return ptx::is_integer(t) ? all2<Max>(t) : minmax_pair<Max>(t);
        default: return nullptr;
    }
}

Handler bit_counts(const ArithmeticQuery& q) {
    bool wide_type = ptx::size_of(q.type) == 8, is_signed = ptx::is_signed(q.type);
    switch (q.operation) {
        case Operation::popc: return wide_type ? map1<Popc<uint64_t>> : map1<Popc<uint32_t>>;
        case Operation::clz: return wide_type ? map1<Clz<uint64_t>> : map1<Clz<uint32_t>>;
        case Operation::brev: return wide_type ? map1<Brev<uint64_t>> : map1<Brev<uint32_t>>;
        case Operation::bfind:
            if (wide_type) return is_signed ? map1<Bfind<int64_t>> : map1<Bfind<uint64_t>>;
            return is_signed ? map1<Bfind<int32_t>> : map1<Bfind<uint32_t>>;
        case Operation::bfind_shift:
            if (wide_type) return is_signed ? map1<BfindShift<int64_t>> : map1<BfindShift<uint64_t>>;
            return is_signed ? map1<BfindShift<int32_t>> : map1<BfindShift<uint32_t>>;
        case Operation::bfe:
            if (wide_type) return is_signed ? map3<Bfe<int64_t>> : map3<Bfe<uint64_t>>;
            return is_signed ? map3<Bfe<int32_t>> : map3<Bfe<uint32_t>>;
        case Operation::bfi: return wide_type ? bfi<uint64_t> : bfi<uint32_t>;
        case Operation::fns: return map3<Fns>;
        case Operation::dp4a: return dot4<Dp4a>(q);
        case Operation::dp2a_lo: return dot2<0>(q);
        case Operation::dp2a_hi: return dot2<16>(q);
        case Operation::szext_clamp: return is_signed ? map2<Szext<int32_t, false>> : map2<Szext<uint32_t, false>>;
        case Operation::szext_wrap: return is_signed ? map2<Szext<int32_t, true>> : map2<Szext<uint32_t, true>>;
        case Operation::bmsk_clamp: return map2<Bmsk<false>>;
        case Operation::bmsk_wrap: return map2<Bmsk<true>>;
        case Operation::prmt: return map3<Prmt>;
        case Operation::prmt_f4e: return map3<PrmtMode<Operation::prmt_f4e>>;
        case Operation::prmt_b4e: return map3<PrmtMode<Operation::prmt_b4e>>;
        case Operation::prmt_rc8: return map3<PrmtMode<Operation::prmt_rc8>>;
        case Operation::prmt_ecl: return map3<PrmtMode<Operation::prmt_ecl>>;
        case Operation::prmt_ecr: return map3<PrmtMode<Operation::prmt_ecr>>;
        case Operation::prmt_rc16: return map3<PrmtMode<Operation::prmt_rc16>>;
        default: return nullptr;
    }
}

Handler logic(const ArithmeticQuery& q) {
    ptx::Type t = q.type;
    switch (q.operation) {
        case Operation::bit_and: return bits2<And>(t);
        case Operation::bit_or: return bits2<Or>(t);
        case Operation::bit_xor: return bits2<Xor>(t);
        case Operation::bit_not: return bits1<Not>(t);
        case Operation::cnot: return bits1<Cnot>(t);
        case Operation::lop3: return lop3;
        case Operation::shl: return bits2<Shl>(t);
        case Operation::shr: return ptx::is_bits(t) ? bits2<Shr>(t) : all2<Shr>(t);
        case Operation::shf_l_clamp: return map3<Shf<true, false>>;
        case Operation::shf_l_wrap: return map3<Shf<true, true>>;
        case Operation::shf_r_clamp: return map3<Shf<false, false>>;
        case Operation::shf_r_wrap: return map3<Shf<false, true>>;
        case Operation::selp: return ptx::size_of(t) == 8 ? selp<uint64_t> : selp<uint32_t>;
        case Operation::slct:
            if (q.type_b == ptx::Type::s32) return ptx::size_of(t) == 8 ? map3<Slct<uint64_t>> : map3<Slct<uint32_t>>;
            if (q.ftz) return ptx::size_of(t) == 8 ? map3<SlctF<uint64_t, true>> : map3<SlctF<uint32_t, true>>;
            return ptx::size_of(t) == 8 ? map3<SlctF<uint64_t, false>> : map3<SlctF<uint32_t, false>>;
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

}  // namespace

Handler select_integer(const ArithmeticQuery& query) {
    if (Handler handler = simple(query)) return handler;
    if (Handler handler = bit_counts(query)) return handler;
    return logic(query);
}

}  // namespace weft::engine::WEFT_ISA
