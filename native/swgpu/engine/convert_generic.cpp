#include "swgpu/engine/convert_generic.h"

#include <bit>
#include <cmath>

namespace weft::engine {
namespace {

using ptx::Type;

// A number as sign, magnitude = mantissa * 2^exponent, or a class of its own.
struct Number {
    enum class Class : uint8_t { finite, infinite, nan } kind = Class::finite;
    bool negative = false;
    uint64_t mantissa = 0;
    int32_t exponent = 0;
};

struct Format {
    int bits;   // of the significand, with the hidden one
    int width;  // of the whole
    int max_exponent;
    uint64_t nan;
    int exponent_bits() const { return width - bits; }
    uint64_t infinity() const { return ((uint64_t{1} << exponent_bits()) - 1) << (bits - 1); }
};

Format format_of(Type type) {
    switch (type) {
        case Type::f16:
        case Type::f16x2: return {11, 16, 15, 0x7fff};
        case Type::bf16:
        case Type::bf16x2: return {8, 16, 127, 0x7fff};
        case Type::tf32: return {11, 19, 127, 0x3ffff};
        case Type::f32: return {24, 32, 127, 0x7fffffff};
        default: return {53, 64, 1023, 0x7fffffffffffffff};
    }
}

Number unpack(uint64_t bits, const Format& format) {
    Number number;
    int fraction_bits = format.bits - 1;
    uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
    int exponent = static_cast<int>((bits >> fraction_bits) & ((uint64_t{1} << format.exponent_bits()) - 1));
    number.negative = bits >> (format.width - 1) & 1;
    if (exponent == (1 << format.exponent_bits()) - 1) {
        number.kind = fraction ? Number::Class::nan : Number::Class::infinite;
        return number;
    }
    number.mantissa = exponent == 0 ? fraction : fraction | uint64_t{1} << fraction_bits;
    number.exponent = (exponent == 0 ? 1 : exponent) - format.max_exponent - fraction_bits;
    return number;
}

// Whether to go to the next magnitude, given what was cut off.
bool rounds_up(Rounding rounding, bool negative, bool odd, bool half, bool more) {
    switch (rounding) {
        case Rounding::rm:
        case Rounding::rmi: return negative && (half || more);
        case Rounding::rp:
        case Rounding::rpi: return !negative && (half || more);
        case Rounding::rz:
        case Rounding::rzi: return false;
        case Rounding::rna: return half;
        default: return half && (more || odd);
    }
}

// mantissa * 2^-shift, rounded.
uint64_t shift_rounded(uint64_t mantissa, int shift, Rounding rounding, bool negative) {
    if (shift <= 0) return mantissa << -shift;
    if (shift > 64) return rounds_up(rounding, negative, false, false, mantissa != 0) ? 1 : 0;
    bool half = mantissa >> (shift - 1) & 1;
    bool more = shift > 1 && (mantissa & ((uint64_t{1} << (shift - 1)) - 1)) != 0;
    uint64_t kept = shift == 64 ? 0 : mantissa >> shift;
    return kept + rounds_up(rounding, negative, kept & 1, half, more);
}

uint64_t overflowed(const Format& format, Rounding rounding, bool negative) {
    bool to_infinity = rounding == Rounding::rn || rounding == Rounding::none || rounding == Rounding::rna ||
                       (rounding == Rounding::rp && !negative) || (rounding == Rounding::rm && negative);
    return to_infinity ? format.infinity() : format.infinity() - 1;
}

uint64_t pack(const Number& number, const Format& format, Rounding rounding) {
    uint64_t sign = static_cast<uint64_t>(number.negative) << (format.width - 1);
    if (number.kind == Number::Class::nan) return format.nan;
    if (number.kind == Number::Class::infinite) return sign | format.infinity();
    if (number.mantissa == 0) return sign;
    int top = 63 - std::countl_zero(number.mantissa);
    int exponent = number.exponent + top;  // of the leading one
    int least = 1 - format.max_exponent;
    int shift = top - (format.bits - 1);
    if (exponent < least) shift += least - exponent;
    uint64_t kept = shift_rounded(number.mantissa, shift, rounding, number.negative);
    int biased = exponent < least ? 0 : exponent + format.max_exponent;
    // The hidden one, and a carry out of the rounding, add to the exponent by themselves.
    uint64_t bits = exponent < least ? kept : (static_cast<uint64_t>(biased - 1) << (format.bits - 1)) + kept;
    if (bits >= format.infinity()) bits = overflowed(format, rounding, number.negative);
    return sign | bits;
}

Number from_integer(uint64_t value, Type type) {
    Number number;
    int width = static_cast<int>(ptx::size_of(type) * 8);
    if (width < 64) value &= (uint64_t{1} << width) - 1;
    number.negative = ptx::is_signed(type) && (value >> (width - 1) & 1);
    number.mantissa = number.negative ? (width < 64 ? (uint64_t{1} << width) - value : 0 - value) : value;
    return number;
}

uint64_t to_integer(const Number& number, Type type, Type from, Rounding rounding) {
    int width = static_cast<int>(ptx::size_of(type) * 8);
    uint64_t ones = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    uint64_t most = ptx::is_signed(type) ? ones >> 1 : ones, least = ptx::is_signed(type) ? (ones >> 1) + 1 : 0;
    if (number.kind == Number::Class::nan) {
        return from == Type::f64 || width == 64 ? uint64_t{1} << (width - 1) : 0;
    }
    if (number.kind == Number::Class::infinite) return number.negative ? least & ones : most;
    uint64_t magnitude = 0;
    bool too_large = false;
    if (number.exponent >= 0) {
        too_large = number.mantissa != 0 && number.exponent > std::countl_zero(number.mantissa);
        magnitude = too_large ? 0 : number.mantissa << number.exponent;
    } else {
        magnitude = shift_rounded(number.mantissa, -number.exponent, rounding, number.negative);
    }
    if (number.negative) {
        if (too_large || magnitude > least) return least & ones;
        return (0 - magnitude) & ones;
    }
    return too_large || magnitude > most ? most : magnitude;
}

// A whole number of the same format.
Number rounded_whole(Number number, Rounding rounding) {
    if (number.kind != Number::Class::finite || number.exponent >= 0) return number;
    number.mantissa = shift_rounded(number.mantissa, -number.exponent, rounding, number.negative);
    number.exponent = 0;
    return number;
}

bool is_whole_rounding(Rounding r) {
    return r == Rounding::rni || r == Rounding::rzi || r == Rounding::rmi || r == Rounding::rpi;
}

Number clamp_unit(Number number) {
    if (number.kind == Number::Class::nan || number.negative) return Number{};
    Number one;
    one.mantissa = 1;
    if (number.kind == Number::Class::infinite) return one;
    if (number.mantissa != 0 && number.exponent + 63 - std::countl_zero(number.mantissa) >= 0) return one;
    return number;
}

bool is_subnormal32(const Number& n) {
    return n.kind == Number::Class::finite && n.mantissa != 0 && n.exponent + 63 - std::countl_zero(n.mantissa) < -126;
}

uint64_t convert(uint64_t bits, const ConvertQuery& q) {
    bool from_float = ptx::is_float(q.from), to_float = ptx::is_float(q.to);
    if (!from_float && !to_float) {
        Number number = from_integer(bits, q.from);
        if (q.sat) return to_integer(number, q.to, q.from, Rounding::rzi);
        return number.negative ? 0 - number.mantissa : number.mantissa;
    }
    Number number = from_float ? unpack(bits, format_of(q.from)) : from_integer(bits, q.from);
    if (q.ftz && q.from == Type::f32 && is_subnormal32(number)) number.mantissa = 0;
    if (!to_float) return to_integer(number, q.to, q.from, q.rounding);
    if (is_whole_rounding(q.rounding)) number = rounded_whole(number, q.rounding);
    if (q.sat && q.to != Type::tf32 && !q.relu) number = clamp_unit(number);
    if (q.relu && number.negative && number.kind != Number::Class::nan) number = Number{};
    Format format = format_of(q.to);
    uint64_t result = pack(number, format, q.rounding);
    if (q.ftz && q.to == Type::f32 && (result & 0x7f800000u) == 0) result &= 0x80000000u;
    if (q.to == Type::tf32) result <<= 13;
    return result;
}

ConvertQuery decode_conversion(uint64_t bits) {
    ConvertQuery q;
    q.to = static_cast<Type>(bits & 0xff);
    q.from = static_cast<Type>(bits >> 8 & 0xff);
    q.rounding = static_cast<Rounding>(bits >> 16 & 0xff);
    q.ftz = bits >> 24 & 1;
    q.sat = bits >> 25 & 1;
    q.relu = bits >> 26 & 1;
    q.wide_source = bits >> 27 & 1;
    q.wide_destination = bits >> 28 & 1;
    return q;
}

uint64_t read_lane(Context& context, Ref ref, bool wide, uint32_t lane) {
    const uint8_t* base = context.base[ref & kConstantBit] + (ref & ~3u);
    return wide ? reinterpret_cast<const uint64_t*>(base)[lane] : reinterpret_cast<const uint32_t*>(base)[lane];
}

const Op* run_generic(Context& context, const Op* op, uint32_t mask) {
    ConvertQuery q = decode_conversion(op->imm);
    uint32_t from_bits = ptx::size_of(q.from) * 8, to_bits = ptx::size_of(q.to) * 8;
    uint64_t from_mask = from_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << from_bits) - 1;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        uint64_t value = convert(read_lane(context, op->a, q.wide_source, lane) & from_mask, q);
        if (to_bits < 64) {
            value &= (uint64_t{1} << to_bits) - 1;
            if (ptx::is_signed(q.to) && (value >> (to_bits - 1) & 1)) value |= ~uint64_t{0} << to_bits;
        }
        uint8_t* d = context.base[0] + op->d;
        if (q.wide_destination)
            reinterpret_cast<uint64_t*>(d)[lane] = value;
        else
            reinterpret_cast<uint32_t*>(d)[lane] = static_cast<uint32_t>(value);
    }
    return op + 1;
}

// .satfinite of a half format: NaN stays NaN, infinities become the largest number.
uint64_t to_half(uint64_t bits, const ConvertQuery& q) {
    ConvertQuery plain = q;
    plain.sat = false;
    uint64_t half = convert(bits, plain), infinity = format_of(q.to).infinity();
    if (q.sat && (half & 0x7fff) == infinity) half -= 1;
    return half;
}

const Op* run_pair(Context& context, const Op* op, uint32_t mask) {
    ConvertQuery q = decode_conversion(op->imm);
    q.from = Type::f32;
    bool pair = q.to == Type::f16x2 || q.to == Type::bf16x2;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        uint32_t value = static_cast<uint32_t>(to_half(read_lane(context, op->a, false, lane), q));
        if (pair) value = value << 16 | static_cast<uint32_t>(to_half(read_lane(context, op->b, false, lane), q));
        reinterpret_cast<uint32_t*>(context.base[0] + op->d)[lane] = value;
    }
    return op + 1;
}

bool is_scalar_float(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64; }

}  // namespace

uint64_t encode_conversion(const ConvertQuery& q) {
    return static_cast<uint64_t>(q.to) | static_cast<uint64_t>(q.from) << 8 | static_cast<uint64_t>(q.rounding) << 16 |
           uint64_t{q.ftz} << 24 | uint64_t{q.sat} << 25 | uint64_t{q.relu} << 26 | uint64_t{q.wide_source} << 27 |
           uint64_t{q.wide_destination} << 28;
}

Handler generic_conversion(const ConvertQuery& q) {
    bool from_float = is_scalar_float(q.from), to_float = is_scalar_float(q.to);
    bool from_int = ptx::is_integer(q.from) || ptx::is_bits(q.from),
         to_int = ptx::is_integer(q.to) || ptx::is_bits(q.to);
    if (q.to == Type::b128 || q.from == Type::b128 || q.relu) return nullptr;
    bool whole = is_whole_rounding(q.rounding);
    if (q.to == Type::tf32) return q.from == Type::f32 ? run_generic : nullptr;
    if (from_int && to_int) return q.rounding == Rounding::none ? run_generic : nullptr;
    if (from_float && to_int) return whole ? run_generic : nullptr;
    if (from_int && to_float)
        return !whole && q.rounding != Rounding::none && q.rounding != Rounding::rna ? run_generic : nullptr;
    if (!from_float || !to_float) return nullptr;
    bool narrows = format_of(q.to).bits < format_of(q.from).bits || (q.from == Type::f16 && q.to == Type::bf16) ||
                   (q.from == Type::bf16 && q.to == Type::f16);
    bool same = q.to == q.from;
    if (narrows && !same) return !whole && q.rounding != Rounding::none ? run_generic : nullptr;
    if (same) return whole || q.rounding == Rounding::none ? run_generic : nullptr;
    return q.rounding == Rounding::none ? run_generic : nullptr;
}

Handler pair_conversion(const ConvertQuery& q) {
    bool half = q.to == Type::f16 || q.to == Type::bf16 || q.to == Type::f16x2 || q.to == Type::bf16x2;
    bool rounding = q.rounding == Rounding::rn || q.rounding == Rounding::rz;
    return half && q.from == Type::f32 && rounding && !q.ftz ? run_pair : nullptr;
}

}  // namespace weft::engine
