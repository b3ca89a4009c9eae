// The scalar types of PTX and what is known about each. No parsing, no arithmetic. Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::ptx {

enum class Type : uint8_t {
    none,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    tf32,
    f32,
    f64,
    u16x2,
    s16x2,
    pred,
};

std::optional<Type> type_from_name(std::string_view name);
std::string_view name_of(Type type);
// 0 for none and pred.
uint32_t size_of(Type type);

constexpr bool is_signed(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }
constexpr bool is_unsigned(Type t) { return t == Type::u8 || t == Type::u16 || t == Type::u32 || t == Type::u64; }
constexpr bool is_integer(Type t) { return is_signed(t) || is_unsigned(t); }
constexpr bool is_bits(Type t) { return t >= Type::b8 && t <= Type::b128; }
constexpr bool is_half(Type t) { return t >= Type::f16 && t <= Type::bf16x2; }
constexpr bool is_float(Type t) { return t >= Type::f16 && t <= Type::f64; }

}  // namespace weft::ptx
