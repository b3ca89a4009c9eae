// Loads and stores of all state spaces. Built once per instruction set; see lanes.h.
#include "swgpu/engine/address.h"

namespace weft::engine::WEFT_ISA {
namespace {

enum class Pattern : uint8_t { scattered, uniform, contiguous };

WEFT_INLINE Pattern pattern_of(const uint64_t* address, uint64_t size) {
    uint64_t first = address[0], differs = 0, steps = 0;
    for (uint64_t i = 0; i < 32; ++i) {
        differs |= address[i] ^ first;
        steps |= address[i] ^ (first + i * size);
    }
    return steps == 0 ? Pattern::contiguous : differs == 0 ? Pattern::uniform : Pattern::scattered;
}

template <class M, class S>
WEFT_INLINE S widen(M value) {
    if constexpr (sizeof(M) == sizeof(S))
        return static_cast<S>(value);
    else if constexpr (static_cast<M>(-1) < static_cast<M>(1) && sizeof(S) == 8)
        return static_cast<S>(static_cast<int64_t>(value));
    else if constexpr (static_cast<M>(-1) < static_cast<M>(1))
        return static_cast<S>(static_cast<int32_t>(value));
    else
        return static_cast<S>(value);
}

// Loads from 32 unrelated addresses. Gathers where the machine has them: their result leaves in whole vectors, so that
// the next instruction need not wait for 32 small stores.
template <class M, class S>
WEFT_INLINE void load_scattered(const uint64_t* address, uint64_t offset, S* d) {
#if defined(__AVX512F__)
    if constexpr (sizeof(M) == 4 && sizeof(S) == 4) {
        const void* base = reinterpret_cast<const void*>(offset);
        for (int i = 0; i < 32; i += 8) {
            __m256i part =
                _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), 0xff, _mm512_loadu_si512(address + i), base, 1);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i), part);
        }
        return;
    } else if constexpr (sizeof(M) == 8) {
        const void* base = reinterpret_cast<const void*>(offset);
        for (int i = 0; i < 32; i += 8) {
            __m512i part =
                _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), 0xff, _mm512_loadu_si512(address + i), base, 1);
            _mm512_storeu_si512(d + i, part);
        }
        return;
    }
#endif
    for (int i = 0; i < 32; ++i) d[i] = widen<M, S>(*reinterpret_cast<const volatile M*>(address[i] + offset));
}

// Shared memory by 32-bit addresses, the commonest access in tiled kernels: 32-bit arithmetic all the way. False when
// an address is misaligned or out of bounds; the general path then finds out which.
WEFT_INLINE bool load_shared_words(Context& context, const Op* op, uint32_t mask, uint32_t* d) {
    const uint32_t* base = row<const uint32_t>(context, op->a);
    uint32_t offset = static_cast<uint32_t>(op->imm), size = static_cast<uint32_t>(context.shared_bytes);
    alignas(64) uint32_t at[32];
    uint32_t high = 0, bits = 0;
    if (mask == kFullMask) {
        for (int i = 0; i < 32; ++i) at[i] = base[i] + offset;
    } else {
        uint32_t first = base[__builtin_ctz(mask)];
        for (int i = 0; i < 32; ++i) at[i] = ((mask & kLaneBit[i]) ? base[i] : first) + offset;
    }
    for (int i = 0; i < 32; ++i) {
        high = at[i] > high ? at[i] : high;
        bits |= at[i];
    }
    if (size < 4 || high > size - 4 || (bits & 3) != 0) return false;
    alignas(64) uint32_t result[32];
    uint32_t* to = mask == kFullMask ? d : result;
#if defined(__AVX512F__)
    for (int i = 0; i < 32; i += 16) {
        __m512i part =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff, _mm512_load_si512(at + i), context.shared, 1);
        _mm512_storeu_si512(to + i, part);
    }
#elif defined(__AVX2__)
    for (int i = 0; i < 32; i += 8) {
        __m256i index = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + i));
        __m256i part = _mm256_i32gather_epi32(reinterpret_cast<const int*>(context.shared), index, 1);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), part);
    }
#else
    for (int i = 0; i < 32; ++i) to[i] = *reinterpret_cast<const uint32_t*>(context.shared + at[i]);
#endif
    if (mask != kFullMask) blend(d, result, mask);
    return true;
}

constexpr uint32_t kSharedWord =
    static_cast<uint32_t>(AddressSpace::shared) | memory_flags::kNarrowAddress | 1u << memory_flags::kVectorShift;

template <class M, class S>
WEFT_INLINE void load_lanes(const uint64_t* address, uint64_t offset, Pattern pattern, S* d) {
    if (pattern == Pattern::contiguous) {
        const M* from = reinterpret_cast<const M*>(address[0] + offset);
        for (int i = 0; i < 32; ++i) d[i] = widen<M, S>(from[i]);
    } else if (pattern == Pattern::uniform) {
        S value = widen<M, S>(*reinterpret_cast<const volatile M*>(address[0] + offset));
        for (int i = 0; i < 32; ++i) d[i] = value;
    } else {
        load_scattered<M, S>(address, offset, d);
    }
}

template <class M, class S>
WEFT_INLINE void load_row(Context& context, Ref ref, uint64_t offset, Pattern pattern, uint32_t mask) {
    S* d = row<S>(context, ref);
    if (__builtin_expect(mask == kFullMask, 1)) {
        load_lanes<M, S>(context.address, offset, pattern, d);
        return;
    }
    alignas(64) S result[32];
    load_lanes<M, S>(context.address, offset, pattern, result);
    blend(d, result, mask);
}

template <class M, class S>
const Op* load(Context& context, const Op* op, uint32_t mask) {
    if constexpr (sizeof(M) == 4 && sizeof(S) == 4) {
        if (op->aux == kSharedWord && load_shared_words(context, op, mask, row<uint32_t>(context, op->d)))
            return op + 1;
    }
    uint32_t count = op->aux >> memory_flags::kVectorShift;
    if (op->aux & memory_flags::kOrdered) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        ++context.sync_ops;
    }
    if (!resolve(context, op, mask, static_cast<uint32_t>(sizeof(M)) * count, false)) return nullptr;
    if (count == 1) {
        load_row<M, S>(context, op->d, 0, pattern_of(context.address, sizeof(M)), mask);
        return op + 1;
    }
    const uint32_t* refs = context.aux + op->e / 4;
    Pattern pattern = pattern_of(context.address, 0);
    if (pattern == Pattern::contiguous) pattern = Pattern::uniform;
    for (uint32_t k = 0; k < count; ++k) {
        if (refs[k] != kNoRef) load_row<M, S>(context, refs[k], k * sizeof(M), pattern, mask);
    }
    return op + 1;
}

template <class M, class S>
WEFT_INLINE void store_row(Context& context, Ref ref, uint64_t offset, bool contiguous, uint32_t mask) {
    const S* from = row<const S>(context, ref);
    if (contiguous && mask == kFullMask) {
        M* to = reinterpret_cast<M*>(context.address[0] + offset);
        for (int i = 0; i < 32; ++i) to[i] = static_cast<M>(from[i]);
        return;
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        *reinterpret_cast<volatile M*>(context.address[lane] + offset) = static_cast<M>(from[lane]);
    }
}

template <class M, class S>
const Op* store(Context& context, const Op* op, uint32_t mask) {
    uint32_t count = op->aux >> memory_flags::kVectorShift;
    if (!resolve(context, op, mask, static_cast<uint32_t>(sizeof(M)) * count, true)) return nullptr;
    if (op->aux & memory_flags::kOrdered) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        ++context.sync_ops;
    }
    if (count == 1) {
        store_row<M, S>(context, op->b, 0, pattern_of(context.address, sizeof(M)) == Pattern::contiguous, mask);
        return op + 1;
    }
    const uint32_t* refs = context.aux + op->e / 4;
    for (uint32_t k = 0; k < count; ++k) store_row<M, S>(context, refs[k], k * sizeof(M), false, mask);
    return op + 1;
}

template <class S>
Handler load_of(ptx::Type type) {
    switch (type) {
        case ptx::Type::b8:
        case ptx::Type::u8: return load<uint8_t, S>;
        case ptx::Type::s8: return load<int8_t, S>;
        case ptx::Type::b16:
        case ptx::Type::u16:
        case ptx::Type::f16:
        case ptx::Type::bf16: return load<uint16_t, S>;
        case ptx::Type::s16: return load<int16_t, S>;
        case ptx::Type::b32:
        case ptx::Type::u32:
        case ptx::Type::f32:
        case ptx::Type::f16x2:
        case ptx::Type::bf16x2:
        case ptx::Type::tf32: return load<uint32_t, S>;
        case ptx::Type::s32: return load<int32_t, S>;
        case ptx::Type::b64:
        case ptx::Type::u64:
        case ptx::Type::s64:
        case ptx::Type::f64:
            if constexpr (sizeof(S) == 8) return load<uint64_t, S>;
            return nullptr;
        default: return nullptr;
    }
}

template <class S>
Handler store_of(ptx::Type type) {
    switch (ptx::size_of(type)) {
        case 1: return store<uint8_t, S>;
        case 2: return store<uint16_t, S>;
        case 4: return store<uint32_t, S>;
        case 8:
            if constexpr (sizeof(S) == 8) return store<uint64_t, S>;
            return nullptr;
        default: return nullptr;
    }
}

}  // namespace

Handler select_memory(const MemoryQuery& query) {
    if (query.is_store) return query.wide_register ? store_of<uint64_t>(query.type) : store_of<uint32_t>(query.type);
    return query.wide_register ? load_of<uint64_t>(query.type) : load_of<uint32_t>(query.type);
}

}  // namespace weft::engine::WEFT_ISA
