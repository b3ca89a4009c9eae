// Numbers as PTX writes them. Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::ptx {

struct Literal {
    uint64_t bits = 0;  // an integer, the bits of an f64, or those of an f32 when is_f32_bits
    bool is_float = false;
    bool is_f32_bits = false;
};

std::optional<Literal> literal_from_text(std::string_view text);
Literal negated(Literal literal);
// As the bits of a value of 4 or 8 bytes of a floating-point type.
uint32_t f32_bits(const Literal& literal);
uint64_t f64_bits(const Literal& literal);

}  // namespace weft::ptx
