// What the integer handler files share: widths, signs, and picking a template by type. For handler files; see lanes.h.
#pragma once

#include "swgpu/engine/lanes.h"

namespace weft::engine::WEFT_ISA {

// The parts of select_integer; each answers null for what is not its own.
Handler select_bits(const ArithmeticQuery& query);
Handler select_moves(const ArithmeticQuery& query);

namespace {

template <class T>
struct Unsigned;
template <>
struct Unsigned<uint16_t> {
    using type = uint16_t;
};
template <>
struct Unsigned<int16_t> {
    using type = uint16_t;
};
template <>
struct Unsigned<uint32_t> {
    using type = uint32_t;
};
template <>
struct Unsigned<int32_t> {
    using type = uint32_t;
};
template <>
struct Unsigned<uint64_t> {
    using type = uint64_t;
};
template <>
struct Unsigned<uint8_t> {
    using type = uint8_t;
};
template <>
struct Unsigned<int64_t> {
    using type = uint64_t;
};
template <class T>
using Uns = typename Unsigned<T>::type;

template <class T>
struct WiderType;
template <>
struct WiderType<uint16_t> {
    using type = uint32_t;
};
template <>
struct WiderType<int16_t> {
    using type = int32_t;
};
template <>
struct WiderType<uint32_t> {
    using type = uint64_t;
};
template <>
struct WiderType<int32_t> {
    using type = int64_t;
};
template <class T>
using Wider = typename WiderType<T>::type;

template <class T>
inline constexpr int kBits = static_cast<int>(sizeof(T) * 8);
template <class T>
inline constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(1);

template <class T>
struct Same1 {
    using D = T;
    using A = T;
};
template <class T>
struct Same2 {
    using D = T;
    using A = T;
    using B = T;
};
template <class T>
struct Same3 {
    using D = T;
    using A = T;
    using B = T;
    using C = T;
};

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
}  // namespace
}  // namespace weft::engine::WEFT_ISA
