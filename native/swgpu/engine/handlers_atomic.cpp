// atom and red. Lanes go one after the other; other workers may touch the same memory at any time. One build for all
// machines.
#define WEFT_ISA atomic
#include "swgpu/engine/atomic.h"

#include "swgpu/engine/address.h"
#include "swgpu/engine/float_ops.h"

namespace weft::engine::atomic {
namespace {

// Applies `change` to *at until no other thread has come between; the value before.
template <class T, class Change>
T update(T* at, Change&& change) {
    T before = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (true) {
        T after = change(before);
        if (__atomic_compare_exchange_n(at, &before, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return before;
    }
}

template <class Bits, class Value, class Combine>
Bits update_as(Bits* at, Bits operand, Combine&& combine) {
    return update(at, [&](Bits before) {
        return __builtin_bit_cast(Bits, combine(__builtin_bit_cast(Value, before), __builtin_bit_cast(Value, operand)));
    });
}

template <class T>
struct Add {
    WEFT_INLINE T run(T* at, T b, T) { return __atomic_fetch_add(at, b, __ATOMIC_SEQ_CST); }
};
template <class T>
struct And {
    WEFT_INLINE T run(T* at, T b, T) { return __atomic_fetch_and(at, b, __ATOMIC_SEQ_CST); }
};
template <class T>
struct Or {
    WEFT_INLINE T run(T* at, T b, T) { return __atomic_fetch_or(at, b, __ATOMIC_SEQ_CST); }
};
template <class T>
struct Xor {
    WEFT_INLINE T run(T* at, T b, T) { return __atomic_fetch_xor(at, b, __ATOMIC_SEQ_CST); }
};
template <class T>
struct Exch {
    WEFT_INLINE T run(T* at, T b, T) { return __atomic_exchange_n(at, b, __ATOMIC_SEQ_CST); }
};
template <class T>
struct Cas {
    WEFT_INLINE T run(T* at, T b, T c) {
        __atomic_compare_exchange_n(at, &b, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return b;
    }
};
template <class T, class V>
struct Min {
    WEFT_INLINE T run(T* at, T b, T) {
        return update_as<T, V>(at, b, [](V x, V y) { return y < x ? y : x; });
    }
};
template <class T, class V>
struct Max {
    WEFT_INLINE T run(T* at, T b, T) {
        return update_as<T, V>(at, b, [](V x, V y) { return y > x ? y : x; });
    }
};
struct Inc {
    WEFT_INLINE uint32_t run(uint32_t* at, uint32_t b, uint32_t) {
        return update(at, [b](uint32_t v) { return v >= b ? 0u : v + 1; });
    }
};
struct Dec {
    WEFT_INLINE uint32_t run(uint32_t* at, uint32_t b, uint32_t) {
        return update(at, [b](uint32_t v) { return v == 0 || v > b ? b : v - 1; });
    }
};
struct AddF32 {
    WEFT_INLINE uint32_t run(uint32_t* at, uint32_t b, uint32_t) {
        return update_as<uint32_t, float>(at, b, [](float x, float y) { return canonical(x + y); });
    }
};
struct AddF64 {
    WEFT_INLINE uint64_t run(uint64_t* at, uint64_t b, uint64_t) {
        return update_as<uint64_t, double>(at, b, [](double x, double y) { return x + y; });
    }
};

template <class H>
WEFT_INLINE uint32_t half_add(uint32_t a, uint32_t b) {
    return H::store(H::load(a) + H::load(b));
}
template <class H>
WEFT_INLINE uint32_t half_min(uint32_t a, uint32_t b) {
    return H::store(pick<false>(H::load(a), H::load(b)));
}
template <class H>
WEFT_INLINE uint32_t half_max(uint32_t a, uint32_t b) {
    return H::store(pick<true>(H::load(a), H::load(b)));
}
using HalfOperation = uint32_t (*)(uint32_t, uint32_t);
template <HalfOperation F>
struct Half {
    WEFT_INLINE uint16_t run(uint16_t* at, uint16_t b, uint16_t) {
        return update(at, [b](uint16_t v) { return static_cast<uint16_t>(F(v, b)); });
    }
};
template <HalfOperation F>
struct Pair {
    WEFT_INLINE uint32_t run(uint32_t* at, uint32_t b, uint32_t) {
        return update(at, [b](uint32_t v) { return F(v & 0xffff, b & 0xffff) | F(v >> 16, b >> 16) << 16; });
    }
};

template <class T, class F>
const Op* run(Context& context, const Op* op, uint32_t mask) {
    using Stored = typename Lane<T>::Stored;
    if (!resolve(context, op, mask, sizeof(T), true)) return nullptr;
    ++context.sync_ops;
    const Stored* b = row<const Stored>(context, op->b);
    const Stored* c = op->c == kNoRef ? b : row<const Stored>(context, op->c);
    Stored* d = op->d == kNoRef ? nullptr : row<Stored>(context, op->d);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        T before =
            F::run(reinterpret_cast<T*>(context.address[lane]), static_cast<T>(b[lane]), static_cast<T>(c[lane]));
        if (d != nullptr) d[lane] = before;
    }
    return op + 1;
}

using U128 = unsigned __int128;

// Needs an instruction that x86-64-v2 has; exch is a loop of it.
template <bool Swap>
const Op* run_quad(Context& context, const Op* op, uint32_t mask) {
    if (!resolve(context, op, mask, 16, true)) return nullptr;
    ++context.sync_ops;
    const U128* b = row<const U128>(context, op->b);
    const U128* c = op->c == kNoRef ? b : row<const U128>(context, op->c);
    U128* d = op->d == kNoRef ? nullptr : row<U128>(context, op->d);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        U128* at = reinterpret_cast<U128*>(context.address[lane]);
        U128 before = Swap ? *at : b[lane];
        if (Swap) {
            while (true) {
                U128 seen = __sync_val_compare_and_swap(at, before, b[lane]);
                if (seen == before) break;
                before = seen;
            }
        } else {
            before = __sync_val_compare_and_swap(at, b[lane], c[lane]);
        }
        if (d != nullptr) d[lane] = before;
    }
    return op + 1;
}

template <template <class> class F>
Handler bits(ptx::Type type) {
    switch (ptx::size_of(type)) {
        case 4: return run<uint32_t, F<uint32_t>>;
        case 8: return run<uint64_t, F<uint64_t>>;
        default: return nullptr;
    }
}

Handler add(ptx::Type type) {
    switch (type) {
        case ptx::Type::u32:
        case ptx::Type::s32: return run<uint32_t, Add<uint32_t>>;
        case ptx::Type::u64:
        case ptx::Type::s64: return run<uint64_t, Add<uint64_t>>;
        case ptx::Type::f32: return run<uint32_t, AddF32>;
        case ptx::Type::f64: return run<uint64_t, AddF64>;
        case ptx::Type::f16: return run<uint16_t, Half<half_add<F16>>>;
        case ptx::Type::bf16: return run<uint16_t, Half<half_add<BF16>>>;
        case ptx::Type::f16x2: return run<uint32_t, Pair<half_add<F16>>>;
        case ptx::Type::bf16x2: return run<uint32_t, Pair<half_add<BF16>>>;
        default: return nullptr;
    }
}

template <template <class, class> class F, HalfOperation H, HalfOperation B>
Handler minmax(ptx::Type type) {
    switch (type) {
        case ptx::Type::u32: return run<uint32_t, F<uint32_t, uint32_t>>;
        case ptx::Type::s32: return run<uint32_t, F<uint32_t, int32_t>>;
        case ptx::Type::u64: return run<uint64_t, F<uint64_t, uint64_t>>;
        case ptx::Type::s64: return run<uint64_t, F<uint64_t, int64_t>>;
        case ptx::Type::f16: return run<uint16_t, Half<H>>;
        case ptx::Type::f16x2: return run<uint32_t, Pair<H>>;
        case ptx::Type::bf16: return run<uint16_t, Half<B>>;
        case ptx::Type::bf16x2: return run<uint32_t, Pair<B>>;
        default: return nullptr;
    }
}

Handler select(AtomicOp op, ptx::Type type) {
    bool is_plain = ptx::is_bits(type);
    switch (op) {
        case AtomicOp::add: return add(type);
        case AtomicOp::min: return minmax<Min, half_min<F16>, half_min<BF16>>(type);
        case AtomicOp::max: return minmax<Max, half_max<F16>, half_max<BF16>>(type);
        case AtomicOp::inc: return type == ptx::Type::u32 ? run<uint32_t, Inc> : nullptr;
        case AtomicOp::dec: return type == ptx::Type::u32 ? run<uint32_t, Dec> : nullptr;
        case AtomicOp::cas:
            if (type == ptx::Type::b16) return run<uint16_t, Cas<uint16_t>>;
            if (type == ptx::Type::b128) return run_quad<false>;
            return bits<Cas>(type);
        case AtomicOp::exch:
            if (type == ptx::Type::b128) return run_quad<true>;
            return bits<Exch>(type);
        case AtomicOp::bit_and: return is_plain ? bits<And>(type) : nullptr;
        case AtomicOp::bit_or: return is_plain ? bits<Or>(type) : nullptr;
        case AtomicOp::bit_xor: return is_plain ? bits<Xor>(type) : nullptr;
    }
    return nullptr;
}

}  // namespace
}  // namespace weft::engine::atomic

namespace weft::engine {

Handler atomic_handler(AtomicOp op, ptx::Type type) { return atomic::select(op, type); }

}  // namespace weft::engine
