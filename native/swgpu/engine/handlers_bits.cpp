// Bit counts, bit fields, permutations, dot products, logic, shifts and selection. Built once per instruction set; see
// lanes.h.
#include "swgpu/engine/int_ops.h"

namespace weft::engine::WEFT_ISA {
namespace {

template <class T>
struct Popc {
    using D = uint32_t;
    using A = T;
    WEFT_INLINE D run(T a) {
        return static_cast<D>(sizeof(T) == 8 ? __builtin_popcountll(a) : __builtin_popcount(static_cast<uint32_t>(a)));
    }
};
template <class T>
struct Clz {
    using D = uint32_t;
    using A = T;
    WEFT_INLINE D run(T a) {
        if (a == 0) return kBits<T>;
        return static_cast<D>(sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz(static_cast<uint32_t>(a)));
    }
};
template <class T>
struct Bfind {
    using D = uint32_t;
    using A = T;
    WEFT_INLINE D run(T value) {
        Uns<T> a = static_cast<Uns<T>>(value);
        if (kSigned<T> && value < 0) a = ~a;
        return a == 0 ? ~0u : static_cast<D>(kBits<T> - 1) - Clz<Uns<T>>::run(a);
    }
};
template <class T>
struct BfindShift {
    using D = uint32_t;
    using A = T;
    WEFT_INLINE D run(T a) {
        uint32_t bit = Bfind<T>::run(a);
        return bit == ~0u ? bit : static_cast<uint32_t>(kBits<T> - 1) - bit;
    }
};
template <class T>
struct Brev : Same1<T> {
    WEFT_INLINE T run(T a) {
        uint64_t v = static_cast<uint64_t>(a) << (64 - kBits<T>);
        v = ((v >> 1) & 0x5555555555555555u) | ((v & 0x5555555555555555u) << 1);
        v = ((v >> 2) & 0x3333333333333333u) | ((v & 0x3333333333333333u) << 2);
        v = ((v >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((v & 0x0f0f0f0f0f0f0f0fu) << 4);
        return static_cast<T>(__builtin_bswap64(v));
    }
};
// Position and length are the low 8 bits; the field may reach past the top, where the sign (or 0) continues.
template <class T>
struct Bfe {
    using D = T;
    using A = T;
    using B = uint32_t;
    using C = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b, uint32_t c) {
        uint32_t pos = b & 0xff, len = c & 0xff, top = static_cast<uint32_t>(kBits<T>) - 1;
        if (len == 0) return 0;
        uint32_t end = pos + len - 1 < top ? pos + len - 1 : top;
        Uns<T> sign = kSigned<T> ? static_cast<Uns<T>>((static_cast<Uns<T>>(a) >> end) & 1) : Uns<T>{0};
        Uns<T> field = pos > top ? Uns<T>{0} : static_cast<Uns<T>>(static_cast<Uns<T>>(a) >> pos);
        uint32_t width = pos > top                                     ? 0
                         : len < static_cast<uint32_t>(kBits<T>) - pos ? len
                                                                       : static_cast<uint32_t>(kBits<T>) - pos;
        Uns<T> keep = width > top ? ~Uns<T>{0} : static_cast<Uns<T>>((Uns<T>{1} << width) - 1);
        return static_cast<T>((field & keep) | (sign ? static_cast<Uns<T>>(~keep) : Uns<T>{0}));
    }
};
template <class T>
struct Bfi {
    WEFT_INLINE T run(T a, T b, uint32_t c, uint32_t d) {
        uint32_t pos = c & 0xff, len = d & 0xff;
        if (pos >= static_cast<uint32_t>(kBits<T>) || len == 0) return b;
        T keep = len >= static_cast<uint32_t>(kBits<T>) ? ~T{0} : static_cast<T>((T{1} << len) - 1);
        keep = static_cast<T>(keep << pos);
        return static_cast<T>((b & ~keep) | ((a << pos) & keep));
    }
};
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
struct Fns {
    using D = uint32_t;
    using A = uint32_t;
    using B = uint32_t;
    using C = int32_t;
    WEFT_INLINE D run(uint32_t mask, uint32_t base, int32_t offset) {
        if (base > 31) return ~0u;
        if (offset == 0) return (mask >> base) & 1 ? base : ~0u;
        int step = offset > 0 ? 1 : -1;
        int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
        for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
            if (((mask >> at) & 1) && --left == 0) return static_cast<D>(at);
        }
        return ~0u;
    }
};
template <class A4, class B4>
struct Dp4a {
    using D = uint32_t;
    using A = uint32_t;
    using B = uint32_t;
    using C = uint32_t;
    WEFT_INLINE D run(uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 32; i += 8)
            c += static_cast<uint32_t>(int32_t{static_cast<A4>(a >> i)} * int32_t{static_cast<B4>(b >> i)});
        return c;
    }
};
template <class A2, class B4, int Shift>
struct Dp2a {
    using D = uint32_t;
    using A = uint32_t;
    using B = uint32_t;
    using C = uint32_t;
    WEFT_INLINE D run(uint32_t a, uint32_t b, uint32_t c) {
        c += static_cast<uint32_t>(int32_t{static_cast<A2>(a)} * int32_t{static_cast<B4>(b >> Shift)});
        return c +
               static_cast<uint32_t>(int32_t{static_cast<A2>(a >> 16)} * int32_t{static_cast<B4>(b >> (Shift + 8))});
    }
};
template <class T, bool Wrap>
struct Szext {
    using D = T;
    using A = T;
    using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) {
        uint32_t n = Wrap ? b & 31 : b;
        if (n > 31) return a;
        if (n == 0) return 0;
        return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - n)) >> (32 - n));
    }
};
template <bool Wrap>
struct Bmsk : Same2<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b) {
        uint32_t pos = Wrap ? a & 31 : a, len = Wrap ? b & 31 : b;
        if (pos > 31 || len == 0) return 0;
        uint32_t ones = len > 31 ? ~0u : (1u << len) - 1;
        return ones << pos;
    }
};
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
    }
};
// The named modes of prmt: which byte of {b,a} goes to each place, per value of c[1:0].
template <Operation Mode>
struct PrmtMode : Same3<uint32_t> {
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
    }
};
template <class T>
struct And : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return a & b; }
};
template <class T>
struct Or : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return a | b; }
};
template <class T>
struct Xor : Same2<T> {
    WEFT_INLINE T run(T a, T b) { return a ^ b; }
};
template <class T>
struct Not : Same1<T> {
    WEFT_INLINE T run(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot : Same1<T> {
    WEFT_INLINE T run(T a) { return a == 0; }
};
template <class T>
struct Shl {
    using D = T;
    using A = T;
    using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) {
        return b >= static_cast<uint32_t>(kBits<T>) ? T{0} : static_cast<T>(a << (b & 63));
    }
};
template <class T>
struct Shr {
    using D = T;
    using A = T;
    using B = uint32_t;
    WEFT_INLINE T run(T a, uint32_t b) {
        uint32_t last = static_cast<uint32_t>(kBits<T>) - 1;
        if constexpr (kSigned<T>) return static_cast<T>(a >> (b > last ? last : b));
        return b > last ? T{0} : static_cast<T>(a >> (b & 63));
    }
};
template <bool Left, bool Wrap>
struct Shf : Same3<uint32_t> {
    WEFT_INLINE uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t n = Wrap ? c & 31 : c > 32 ? 32 : c;
        uint64_t both = a | uint64_t{b} << 32;
        return static_cast<uint32_t>(Left ? (both << n) >> 32 : both >> n);
    }
};
template <class T>
struct Slct {
    using D = T;
    using A = T;
    using B = T;
    using C = int32_t;
    WEFT_INLINE T run(T a, T b, int32_t c) { return c >= 0 ? a : b; }
};
template <class T, bool Ftz>
struct SlctF {
    using D = T;
    using A = T;
    using B = T;
    using C = uint32_t;
    WEFT_INLINE T run(T a, T b, uint32_t c) {
        bool zero = Ftz ? (c & 0x7f800000u) == 0 : (c & 0x7fffffffu) == 0;
        bool take = zero || !(c >> 31);
        return take && (c & 0x7fffffffu) <= 0x7f800000u ? a : b;
    }
};

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
        result[i] = (keep[0] & ~x & ~y & ~z) | (keep[1] & ~x & ~y & z) | (keep[2] & ~x & y & ~z) |
                    (keep[3] & ~x & y & z) | (keep[4] & x & ~y & ~z) | (keep[5] & x & ~y & z) | (keep[6] & x & y & ~z) |
                    (keep[7] & x & y & z);
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
        default: return nullptr;
    }
}

}  // namespace

Handler select_bits(const ArithmeticQuery& query) {
    if (Handler handler = bit_counts(query)) return handler;
    return logic(query);
}

}  // namespace weft::engine::WEFT_ISA
