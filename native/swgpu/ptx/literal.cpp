#include "swgpu/ptx/literal.h"

#include <bit>
#include <cstdlib>
#include <string>

namespace weft::ptx {
namespace {

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

std::optional<uint64_t> integer(std::string_view digits, uint64_t base) {
    if (digits.empty()) return std::nullopt;
    uint64_t value = 0;
    for (char c : digits) {
        uint64_t digit = static_cast<uint64_t>(digit_of(c));
        if (digit >= base || value > (~uint64_t{0} - digit) / base) return std::nullopt;
        value = value * base + digit;
    }
    return value;
}

bool starts(std::string_view text, char second) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 32) == second;
}

}  // namespace

std::optional<Literal> literal_from_text(std::string_view text) {
    if (starts(text, 'f') || starts(text, 'd')) {
        bool is_f32 = (text[1] | 32) == 'f';
        if (text.size() != (is_f32 ? 10u : 18u)) return std::nullopt;
        auto bits = integer(text.substr(2), 16);
        if (!bits) return std::nullopt;
        return Literal{*bits, true, is_f32};
    }
    if (text.find('.') != std::string_view::npos ||
        (!starts(text, 'x') && text.find_first_of("eE") != std::string_view::npos)) {
        std::string copy(text);
        char* end = nullptr;
        double value = std::strtod(copy.c_str(), &end);
        if (*end != '\0') return std::nullopt;
        return Literal{std::bit_cast<uint64_t>(value), true, false};
    }
    if (!text.empty() && text.back() == 'U') text.remove_suffix(1);
    std::optional<uint64_t> value;
    if (starts(text, 'x')) {
        value = integer(text.substr(2), 16);
    } else if (starts(text, 'b')) {
        value = integer(text.substr(2), 2);
    } else if (text.size() > 1 && text[0] == '0') {
        value = integer(text.substr(1), 8);
    } else {
        value = integer(text, 10);
    }
    if (!value) return std::nullopt;
    return Literal{*value, false, false};
}

Literal negated(Literal literal) {
    if (!literal.is_float) {
        literal.bits = 0 - literal.bits;
    } else {
        literal.bits ^= literal.is_f32_bits ? uint64_t{1} << 31 : uint64_t{1} << 63;
    }
    return literal;
}

uint32_t f32_bits(const Literal& literal) {
    if (!literal.is_float) return static_cast<uint32_t>(literal.bits);
    if (literal.is_f32_bits) return static_cast<uint32_t>(literal.bits);
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits)));
}

uint64_t f64_bits(const Literal& literal) {
    if (!literal.is_float || !literal.is_f32_bits) return literal.bits;
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(literal.bits))));
}

}  // namespace weft::ptx
