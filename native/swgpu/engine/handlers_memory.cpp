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
    if constexpr (sizeof(M) == sizeof(S)) return static_cast<S>(value);
    else if constexpr (static_cast<M>(-1) < static_cast<M>(1) && sizeof(S) == 8) return static_cast<S>(static_cast<int64_t>(value));
    else if constexpr (static_cast<M>(-1) < static_cast<M>(1)) return static_cast<S>(static_cast<int32_t>(value));
    else return static_cast<S>(value);
}

template <class M, class S>
WEFT_INLINE void load_lanes(const uint64_t* address, uint64_t offset, Pattern pattern, S* d) {
    if (pattern == Pattern::contiguous) {
        const M* from = reinterpret_cast<const M*>(address[0] + offset);
        for (int i = 0; i < 32; ++i) d[i] = widen<M, S>(from[i]);
    } else if (pattern == Pattern::uniform) {
        S value = widen<M, S>(*reinterpret_cast<const volatile M*>(address[0] + offset));
        for (int i = 0; i < 32; ++i) d[i] = value;
    } else {
        for (int i = 0; i < 32; ++i) d[i] = widen<M, S>(*reinterpret_cast<const volatile M*>(address[i] + offset));
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
        case ptx::Type::b8: case ptx::Type::u8: return load<uint8_t, S>;
        case ptx::Type::s8: return load<int8_t, S>;
        case ptx::Type::b16: case ptx::Type::u16: case ptx::Type::f16: case ptx::Type::bf16: return load<uint16_t, S>;
        case ptx::Type::s16: return load<int16_t, S>;
        case ptx::Type::b32: case ptx::Type::u32: case ptx::Type::f32: case ptx::Type::f16x2: case ptx::Type::bf16x2: case ptx::Type::tf32:
            return load<uint32_t, S>;
        case ptx::Type::s32: return load<int32_t, S>;
        case ptx::Type::b64: case ptx::Type::u64: case ptx::Type::s64: case ptx::Type::f64:
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
