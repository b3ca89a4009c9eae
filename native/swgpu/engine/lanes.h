// Loops over the 32 lanes of a warp. Included only by handler files, which are compiled once per instruction set with
// WEFT_ISA naming the set; all is inside that namespace, so that no function built for a wide machine is linked into a
// narrow one.
#pragma once

#include "swgpu/engine/op.h"
#include "swgpu/engine/query.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WEFT_INLINE static inline __attribute__((always_inline))

namespace weft::engine::WEFT_ISA {
namespace {

template <class T>
WEFT_INLINE T* row(Context& context, Ref ref) {
    return reinterpret_cast<T*>(context.base[ref & kConstantBit] + (ref & ~3u));
}

WEFT_INLINE uint32_t predicate(Context& context, Ref ref) {
    uint32_t value = *row<uint32_t>(context, ref);
    return (ref & kNegatedBit) ? ~value : value;
}

WEFT_INLINE void set_predicate(Context& context, Ref ref, uint32_t value, uint32_t mask) {
    uint32_t* word = row<uint32_t>(context, ref);
    *word = (*word & ~mask) | (value & mask);
}

// How a value of type T is held in a row: types below 32 bits fill the low part of a 32-bit lane.
template <class T>
struct Lane {
    using Stored = T;
    WEFT_INLINE T load(const Stored* p, int i) { return p[i]; }
    WEFT_INLINE Stored store(T v) { return v; }
};
template <>
struct Lane<uint16_t> {
    using Stored = uint32_t;
    WEFT_INLINE uint16_t load(const Stored* p, int i) { return static_cast<uint16_t>(p[i]); }
    WEFT_INLINE Stored store(uint16_t v) { return v; }
};
template <>
struct Lane<int16_t> {
    using Stored = uint32_t;
    WEFT_INLINE int16_t load(const Stored* p, int i) { return static_cast<int16_t>(p[i]); }
    WEFT_INLINE Stored store(int16_t v) { return static_cast<uint16_t>(v); }
};
template <>
struct Lane<uint8_t> {
    using Stored = uint32_t;
    WEFT_INLINE uint8_t load(const Stored* p, int i) { return static_cast<uint8_t>(p[i]); }
    WEFT_INLINE Stored store(uint8_t v) { return v; }
};
template <>
struct Lane<int8_t> {
    using Stored = uint32_t;
    WEFT_INLINE int8_t load(const Stored* p, int i) { return static_cast<int8_t>(p[i]); }
    WEFT_INLINE Stored store(int8_t v) { return static_cast<uint8_t>(v); }
};

alignas(64) static constexpr uint32_t kLaneBit[32] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <class S>
WEFT_INLINE void blend(S* d, const S* from, uint32_t mask) {
#if defined(__AVX512F__)
    if constexpr (sizeof(S) == 4) {
        _mm512_mask_storeu_epi32(d, static_cast<__mmask16>(mask), _mm512_loadu_si512(from));
        _mm512_mask_storeu_epi32(d + 16, static_cast<__mmask16>(mask >> 16), _mm512_loadu_si512(from + 16));
    } else {
        for (int i = 0; i < 32; i += 8) {
            _mm512_mask_storeu_epi64(d + i, static_cast<__mmask8>(mask >> i), _mm512_loadu_si512(from + i));
        }
    }
#else
    if constexpr (sizeof(S) == 4) {
        for (int i = 0; i < 32; ++i) d[i] = (mask & kLaneBit[i]) ? from[i] : d[i];
    } else {
        for (int i = 0; i < 32; ++i) d[i] = ((mask >> i) & 1) ? from[i] : d[i];
    }
#endif
}

// Bit i of the result is the sign of lane i.
WEFT_INLINE uint32_t sign_mask(const int32_t* lanes) {
#if defined(__AVX512DQ__)
    return static_cast<uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(lanes))) |
           static_cast<uint32_t>(_mm512_movepi32_mask(_mm512_load_si512(lanes + 16))) << 16;
#elif defined(__AVX2__)
    uint32_t mask = 0;
    for (int i = 0; i < 32; i += 8) {
        __m256 part = _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(lanes + i)));
        mask |= static_cast<uint32_t>(_mm256_movemask_ps(part)) << i;
    }
    return mask;
#elif defined(__SSE2__)
    uint32_t mask = 0;
    for (int i = 0; i < 32; i += 4) {
        __m128 part = _mm_castsi128_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(lanes + i)));
        mask |= static_cast<uint32_t>(_mm_movemask_ps(part)) << i;
    }
    return mask;
#else
    uint32_t mask = 0;
    for (int i = 0; i < 32; ++i) mask |= (static_cast<uint32_t>(lanes[i]) >> 31) << i;
    return mask;
#endif
}

// A destination row equals a source row or lies apart from it, so lanes are independent (ivdep).
template <class F, class... Sources>
WEFT_INLINE void run_lanes(typename Lane<typename F::D>::Stored* d, const Sources*... sources) {
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) d[i] = Lane<typename F::D>::store(F::at(i, sources...));
}

template <class F, class... Sources>
WEFT_INLINE const Op* map_rows(Context& context, const Op* op, uint32_t mask, const Sources*... sources) {
    using Stored = typename Lane<typename F::D>::Stored;
    Stored* d = row<Stored>(context, op->d);
    if (__builtin_expect(mask == kFullMask, 1)) {
        run_lanes<F>(d, sources...);
    } else {
        alignas(64) Stored result[32];
        run_lanes<F>(result, sources...);
        blend(d, result, mask);
    }
    return op + 1;
}

template <class F>
struct At1 {
    using D = typename F::D;
    using A = Lane<typename F::A>;
    WEFT_INLINE D at(int i, const typename A::Stored* a) { return F::run(A::load(a, i)); }
};
template <class F>
struct At2 {
    using D = typename F::D;
    using A = Lane<typename F::A>;
    using B = Lane<typename F::B>;
    WEFT_INLINE D at(int i, const typename A::Stored* a, const typename B::Stored* b) {
        return F::run(A::load(a, i), B::load(b, i));
    }
};
template <class F>
struct At3 {
    using D = typename F::D;
    using A = Lane<typename F::A>;
    using B = Lane<typename F::B>;
    using C = Lane<typename F::C>;
    WEFT_INLINE D at(int i, const typename A::Stored* a, const typename B::Stored* b, const typename C::Stored* c) {
        return F::run(A::load(a, i), B::load(b, i), C::load(c, i));
    }
};

// The handlers proper: F has the types D, A (B, C) and a static run().
template <class F>
const Op* map1(Context& context, const Op* op, uint32_t mask) {
    return map_rows<At1<F>>(context, op, mask, row<const typename Lane<typename F::A>::Stored>(context, op->a));
}
template <class F>
const Op* map2(Context& context, const Op* op, uint32_t mask) {
    return map_rows<At2<F>>(context, op, mask, row<const typename Lane<typename F::A>::Stored>(context, op->a),
                            row<const typename Lane<typename F::B>::Stored>(context, op->b));
}
template <class F>
const Op* map3(Context& context, const Op* op, uint32_t mask) {
    return map_rows<At3<F>>(context, op, mask, row<const typename Lane<typename F::A>::Stored>(context, op->a),
                            row<const typename Lane<typename F::B>::Stored>(context, op->b),
                            row<const typename Lane<typename F::C>::Stored>(context, op->c));
}

}  // namespace
}  // namespace weft::engine::WEFT_ISA
