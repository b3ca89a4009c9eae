// f32 and f64 arithmetic rounded towards zero, down or up: the host's rounding mode is changed around the loop. Built
// with -frounding-math; the operations are kept out of line so that none moves across the change.
#include <cfenv>

#define WEFT_ISA directed
#include "swgpu/engine/float_ops.h"

namespace weft::engine::directed {
namespace {

#define WEFT_KEEP static __attribute__((noinline, noipa))

template <class T, Operation K>
WEFT_KEEP void compute(T* d, const T* a, const T* b, const T* c) {
    for (int i = 0; i < 32; ++i) {
        if constexpr (K == Operation::add) d[i] = a[i] + b[i];
        if constexpr (K == Operation::sub) d[i] = a[i] - b[i];
        if constexpr (K == Operation::mul) d[i] = a[i] * b[i];
        if constexpr (K == Operation::div) d[i] = a[i] / b[i];
        if constexpr (K == Operation::rcp) d[i] = T(1) / a[i];
        if constexpr (K == Operation::sqrt)
            d[i] = sizeof(T) == 4 ? static_cast<T>(__builtin_sqrtf(static_cast<float>(a[i])))
                                  : static_cast<T>(__builtin_sqrt(a[i]));
        if constexpr (K == Operation::fma)
            d[i] = sizeof(T) == 4 ? static_cast<T>(__builtin_fmaf(static_cast<float>(a[i]), static_cast<float>(b[i]),
                                                                  static_cast<float>(c[i])))
                                  : static_cast<T>(__builtin_fma(a[i], b[i], c[i]));
    }
}

int host_mode(Rounding rounding) {
    return rounding == Rounding::rz ? FE_TOWARDZERO : rounding == Rounding::rm ? FE_DOWNWARD : FE_UPWARD;
}

template <class T, bool Ftz>
WEFT_INLINE void load(T* to, Context& context, Ref ref) {
    const T* from = ref == kNoRef ? nullptr : row<const T>(context, ref);
    for (int i = 0; i < 32; ++i) to[i] = from ? flush<Ftz>(from[i]) : T(1);
}

template <class T, Operation K, bool Ftz>
const Op* run(Context& context, const Op* op, uint32_t mask) {
    alignas(64) T a[32], b[32], c[32], result[32];
    load<T, Ftz>(a, context, op->a);
    load<T, Ftz>(b, context, op->b);
    load<T, Ftz>(c, context, op->c);
    int before = fegetround();
    fesetround(host_mode(static_cast<Rounding>(op->aux & 0xff)));
    compute<T, K>(result, a, b, c);
    fesetround(before);
    bool sat = op->aux & 0x100;
    for (int i = 0; i < 32; ++i) {
        result[i] = flush<Ftz>(result[i]);
        result[i] = sat ? clamp01(result[i]) : canonical(result[i]);
    }
    blend(row<T>(context, op->d), result, mask);
    return op + 1;
}

template <Operation K>
Handler of(const ArithmeticQuery& q) {
    if (q.type == ptx::Type::f64) return q.ftz || q.sat ? nullptr : run<double, K, false>;
    return q.ftz ? run<float, K, true> : run<float, K, false>;
}

}  // namespace
}  // namespace weft::engine::directed

namespace weft::engine {

Handler directed_rounding_handler(const ArithmeticQuery& q) {
    if (q.rounding != Rounding::rz && q.rounding != Rounding::rm && q.rounding != Rounding::rp) return nullptr;
    switch (q.operation) {
        case Operation::add: return directed::of<Operation::add>(q);
        case Operation::sub: return directed::of<Operation::sub>(q);
        case Operation::mul: return directed::of<Operation::mul>(q);
        case Operation::fma: return directed::of<Operation::fma>(q);
        case Operation::div: return q.sat ? nullptr : directed::of<Operation::div>(q);
        case Operation::rcp: return q.sat ? nullptr : directed::of<Operation::rcp>(q);
        case Operation::sqrt: return q.sat ? nullptr : directed::of<Operation::sqrt>(q);
        default: return nullptr;
    }
}

}  // namespace weft::engine
