// Fragments are gathered into small matrices, multiplied there, and spread again. The accumulation is in f64 (f32
// inputs and below), rounded once; the ISA leaves order and precision open. One build for all machines.
#define WEFT_ISA matrix
#include "swgpu/engine/matrix.h"

#include <cstring>

#include "swgpu/engine/address.h"
#include "swgpu/engine/float_ops.h"

namespace weft::engine::matrix {
namespace {

using ptx::Type;

struct Place {
    uint32_t row, column;
};

constexpr uint32_t kMostK = 32;

template <Type T>
constexpr uint32_t kPerRegister = T == Type::f16 || T == Type::bf16 ? 2
                                  : T == Type::s8 || T == Type::u8  ? 4
                                                                    : 1;

// Where element i of lane's A fragment lies. Groups of four lanes share a row.
template <Type T, uint32_t M, uint32_t K>
constexpr Place place_a(uint32_t lane, uint32_t i) {
    uint32_t group = lane >> 2, in_group = lane & 3, per = kPerRegister<T>;
    uint32_t reg = i / per, part = i % per;
    // Registers alternate between the upper and lower eight rows, then step to the right half of K.
    uint32_t row = group + (M == 16 && (reg & 1) ? 8 : 0);
    uint32_t step = M == 16 ? reg / 2 : reg;
    return {row, in_group * per + part + step * per * 4};
}

template <Type T, uint32_t K>
constexpr Place place_b(uint32_t lane, uint32_t i) {
    uint32_t per = kPerRegister<T>, reg = i / per, part = i % per;
    return {(lane & 3) * per + part + reg * per * 4, lane >> 2};
}

constexpr Place place_c(uint32_t lane, uint32_t i) {
    return {(lane >> 2) + (i >= 2 ? 8 : 0), (lane & 3) * 2 + (i & 1)};
}

template <Type T>
double value_of(uint64_t bits, uint32_t part) {
    if constexpr (T == Type::f16) return double(f32_from_f16(static_cast<uint32_t>(bits >> (16 * part)) & 0xffff));
    if constexpr (T == Type::bf16) return double(f32_from_bf16(static_cast<uint32_t>(bits >> (16 * part)) & 0xffff));
    if constexpr (T == Type::tf32) return double(f32_of(static_cast<uint32_t>(bits) & 0xffffe000u));
    if constexpr (T == Type::f32) return double(f32_of(static_cast<uint32_t>(bits)));
    if constexpr (T == Type::f64) return f64_of(bits);
    if constexpr (T == Type::s8) return static_cast<int8_t>(bits >> (8 * part));
    if constexpr (T == Type::u8) return static_cast<uint8_t>(bits >> (8 * part));
    return static_cast<int32_t>(static_cast<uint32_t>(bits));
}

uint64_t lane_bits(Context& context, Ref ref, bool wide, uint32_t lane) {
    return wide ? row<const uint64_t>(context, ref)[lane] : row<const uint32_t>(context, ref)[lane];
}

template <Type T, uint32_t M, uint32_t K>
void gather_a(Context& context, const uint32_t* refs, double (&a)[16][kMostK]) {
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
        for (uint32_t i = 0; i < M * K / kWarpLanes; ++i) {
            Place at = place_a<T, M, K>(lane, i);
            a[at.row][at.column] =
                value_of<T>(lane_bits(context, refs[i / kPerRegister<T>], T == Type::f64, lane), i % kPerRegister<T>);
        }
    }
}

template <Type T, uint32_t K>
void gather_b(Context& context, const uint32_t* refs, double (&b)[kMostK][8]) {
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
        for (uint32_t i = 0; i < 8 * K / kWarpLanes; ++i) {
            Place at = place_b<T, K>(lane, i);
            b[at.row][at.column] =
                value_of<T>(lane_bits(context, refs[i / kPerRegister<T>], T == Type::f64, lane), i % kPerRegister<T>);
        }
    }
}

template <Type T>
void spread(Context& context, const uint32_t* refs, uint32_t lane, uint32_t i, double value, bool saturate,
            uint32_t mask) {
    if (!(mask >> lane & 1)) return;
    if constexpr (T == Type::f64) {
        row<double>(context, refs[i])[lane] = value;
    } else if constexpr (T == Type::f32) {
        row<float>(context, refs[i])[lane] = canonical(static_cast<float>(value));
    } else if constexpr (T == Type::f16) {
        uint32_t* word = row<uint32_t>(context, refs[i / 2]) + lane;
        uint32_t shift = 16 * (i & 1);
        *word = (*word & ~(0xffffu << shift)) | f16_from_f32(odd_f32(value)) << shift;
    } else {
        double bounded = value > 2147483647.0 ? 2147483647.0 : value < -2147483648.0 ? -2147483648.0 : value;
        row<int32_t>(context, refs[i])[lane] =
            static_cast<int32_t>(saturate ? static_cast<int64_t>(bounded) : static_cast<int64_t>(value));
    }
}

template <Type A, Type B, Type C, Type D, uint32_t M, uint32_t K>
const Op* run(Context& context, const Op* op, uint32_t mask) {
    constexpr uint32_t kA = M * K / kWarpLanes / kPerRegister<A>, kB = 8 * K / kWarpLanes / kPerRegister<B>;
    constexpr uint32_t kElements = M * 8 / kWarpLanes;
    constexpr uint32_t kD = D == Type::f16 ? kElements / 2 : kElements;
    const uint32_t* d = context.aux + op->e / 4;
    const uint32_t *fa = d + kD, *fb = fa + kA, *fc = fb + kB;
    double a[16][kMostK], b[kMostK][8], sum[16][8];
    gather_a<A, M, K>(context, fa, a);
    gather_b<B, K>(context, fb, b);
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
        for (uint32_t i = 0; i < kElements; ++i) {
            Place at = place_c(lane, i);
            Ref ref = fc[C == Type::f16 ? i / 2 : i];
            sum[at.row][at.column] =
                value_of<C>(lane_bits(context, ref, C == Type::f64, lane), C == Type::f16 ? i & 1 : 0);
        }
    }
    for (uint32_t m = 0; m < M; ++m) {
        for (uint32_t k = 0; k < K; ++k) {
            for (uint32_t n = 0; n < 8; ++n) sum[m][n] += a[m][k] * b[k][n];
        }
    }
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
        for (uint32_t i = 0; i < kElements; ++i) {
            Place at = place_c(lane, i);
            spread<D>(context, d, lane, i, sum[at.row][at.column], op->aux != 0, mask);
        }
    }
    return op + 1;
}

template <Type A, uint32_t K>
Handler half_of(const MatrixShape& s) {
    if (s.c == Type::f32 && s.d == Type::f32) return run<A, A, Type::f32, Type::f32, 16, K>;
    if (A == Type::f16 && s.c == Type::f16 && s.d == Type::f16) return run<A, A, Type::f16, Type::f16, 16, K>;
    return nullptr;
}

template <uint32_t K>
Handler bytes_of(const MatrixShape& s) {
    if (s.c != Type::s32 || s.d != Type::s32) return nullptr;
    bool a = s.a == Type::s8, b = s.b == Type::s8;
    if (a)
        return b ? run<Type::s8, Type::s8, Type::s32, Type::s32, 16, K>
                 : run<Type::s8, Type::u8, Type::s32, Type::s32, 16, K>;
    return b ? run<Type::u8, Type::s8, Type::s32, Type::s32, 16, K>
             : run<Type::u8, Type::u8, Type::s32, Type::s32, 16, K>;
}

Handler select(const MatrixShape& s) {
    bool bytes = (s.a == Type::s8 || s.a == Type::u8) && (s.b == Type::s8 || s.b == Type::u8);
    if (s.m == 8) {
        bool f64 = s.a == Type::f64 && s.b == Type::f64 && s.c == Type::f64 && s.d == Type::f64;
        return s.k == 4 && f64 ? run<Type::f64, Type::f64, Type::f64, Type::f64, 8, 4> : nullptr;
    }
    if (bytes) return s.k == 16 ? bytes_of<16>(s) : s.k == 32 ? bytes_of<32>(s) : nullptr;
    if (s.a != s.b) return nullptr;
    if (s.a == Type::f16) return s.k == 16 ? half_of<Type::f16, 16>(s) : s.k == 8 ? half_of<Type::f16, 8>(s) : nullptr;
    if (s.a == Type::bf16)
        return s.k == 16 ? half_of<Type::bf16, 16>(s) : s.k == 8 ? half_of<Type::bf16, 8>(s) : nullptr;
    if (s.a == Type::tf32 && s.c == Type::f32 && s.d == Type::f32) {
        if (s.k == 4) return run<Type::tf32, Type::tf32, Type::f32, Type::f32, 16, 4>;
        if (s.k == 8) return run<Type::tf32, Type::tf32, Type::f32, Type::f32, 16, 8>;
    }
    return nullptr;
}

// The lanes whose addresses name rows: eight per matrix.
uint32_t address_lanes(uint32_t count) { return count >= 4 ? kFullMask : (1u << (8 * count)) - 1; }

template <bool Transposed>
const Op* run_load(Context& context, const Op* op, uint32_t mask) {
    uint32_t count = op->aux >> memory_flags::kVectorShift;
    if (!resolve(context, op, mask & address_lanes(count), 16, false)) return nullptr;
    const uint32_t* refs = context.aux + op->e / 4;
    for (uint32_t m = 0; m < count; ++m) {
        uint16_t rows[8][8];
        for (uint32_t r = 0; r < 8; ++r)
            std::memcpy(rows[r], reinterpret_cast<const void*>(context.address[m * 8 + r]), 16);
        uint32_t* d = row<uint32_t>(context, refs[m]);
        for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
            if (!(mask >> lane & 1)) continue;
            uint32_t r = lane >> 2, c = (lane & 3) * 2;
            uint32_t low = Transposed ? rows[c][r] : rows[r][c], high = Transposed ? rows[c + 1][r] : rows[r][c + 1];
            d[lane] = low | high << 16;
        }
    }
    return op + 1;
}

template <bool Transposed>
const Op* run_store(Context& context, const Op* op, uint32_t mask) {
    uint32_t count = op->aux >> memory_flags::kVectorShift;
    if (!resolve(context, op, mask & address_lanes(count), 16, true)) return nullptr;
    const uint32_t* refs = context.aux + op->e / 4;
    for (uint32_t m = 0; m < count; ++m) {
        uint16_t rows[8][8];
        const uint32_t* from = row<const uint32_t>(context, refs[m]);
        for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
            uint32_t r = lane >> 2, c = (lane & 3) * 2;
            (Transposed ? rows[c][r] : rows[r][c]) = static_cast<uint16_t>(from[lane]);
            (Transposed ? rows[c + 1][r] : rows[r][c + 1]) = static_cast<uint16_t>(from[lane] >> 16);
        }
        for (uint32_t r = 0; r < 8; ++r) std::memcpy(reinterpret_cast<void*>(context.address[m * 8 + r]), rows[r], 16);
    }
    return op + 1;
}

}  // namespace
}  // namespace weft::engine::matrix

namespace weft::engine {

Handler mma_handler(const MatrixShape& shape) { return matrix::select(shape); }
Handler matrix_load_handler(bool transposed) { return transposed ? matrix::run_load<true> : matrix::run_load<false>; }
Handler matrix_store_handler(bool transposed) {
    return transposed ? matrix::run_store<true> : matrix::run_store<false>;
}

}  // namespace weft::engine
