"""Floating-point arithmetic on bit patterns with exact intermediate values: the model of every opcode that rounds.

A finite number is sign, mantissa and exponent as Python integers, so nothing is lost before the one rounding at the end.
"""

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True)
class Format:
    """`precision` counts the hidden bit. `nan` is the canonical one."""

    width: int
    precision: int
    emax: int
    nan: int

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return ((1 << (self.width - self.precision)) - 1) << (self.precision - 1)


F16 = Format(16, 11, 15, 0x7FFF)
BF16 = Format(16, 8, 127, 0x7FFF)
TF32 = Format(19, 11, 127, 0x3FFFF)
F32 = Format(32, 24, 127, 0x7FFFFFFF)
F64 = Format(64, 53, 1023, 0x7FFFFFFFFFFFFFFF)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "tf32": TF32}


def is_nan(a: int, f: Format) -> bool:
    return a & ~f.sign > f.infinity


def is_inf(a: int, f: Format) -> bool:
    return a & ~f.sign == f.infinity


def is_subnormal(a: int, f: Format) -> bool:
    return 0 < a & ~f.sign < 1 << (f.precision - 1)


def negative(a: int, f: Format) -> int:
    return a >> (f.width - 1) & 1


def flush(a: int, f: Format) -> int:
    return a & f.sign if is_subnormal(a, f) else a


def finite(a: int, f: Format) -> tuple[int, int]:
    """(m, e) with the value m * 2**e; m has the sign."""
    fraction = a & ((1 << (f.precision - 1)) - 1)
    exponent = (a & ~f.sign) >> (f.precision - 1)
    m = fraction if exponent == 0 else fraction | 1 << (f.precision - 1)
    return (-m if a & f.sign else m), max(exponent, 1) - f.emax - (f.precision - 1)


def shift_rounded(m: int, shift: int, mode: str, sign: int) -> int:
    """m * 2**-shift to an integer; m >= 0."""
    if shift <= 0:
        return m << -shift
    kept, rest, half = m >> shift, m & ((1 << shift) - 1), 1 << (shift - 1)
    up = {
        "rn": rest > half or (rest == half and kept & 1 == 1),
        "rz": False,
        "rm": sign == 1 and rest > 0,
        "rp": sign == 0 and rest > 0,
        "rna": rest >= half,
    }[mode]
    return kept + up


def encode(m: int, e: int, f: Format, mode: str = "rn", zero_sign: int = 0) -> int:
    """The number m * 2**e in the format, rounded once."""
    if m == 0:
        return zero_sign * f.sign
    sign, m = int(m < 0), abs(m)
    unit = max(m.bit_length() - 1 + e, 1 - f.emax) - (f.precision - 1)
    kept = shift_rounded(m, unit - e, mode, sign)
    bits = ((unit + f.precision - 1 + f.emax - 1) << (f.precision - 1)) + kept
    if bits >= f.infinity:
        to_infinity = mode in {"rn", "rna"} or (mode == "rp" and not sign) or (mode == "rm" and sign)
        bits = f.infinity if to_infinity else f.infinity - 1
    return sign * f.sign | bits


def fma(a: int, b: int, c: int, f: Format, mode: str = "rn") -> int:
    if is_nan(a, f) or is_nan(b, f) or is_nan(c, f):
        return f.nan
    sign = negative(a, f) ^ negative(b, f)
    zero = (a & ~f.sign) == 0 or (b & ~f.sign) == 0
    if is_inf(a, f) or is_inf(b, f):
        if zero or (is_inf(c, f) and negative(c, f) != sign):
            return f.nan
        return sign * f.sign | f.infinity
    if is_inf(c, f):
        return c
    (ma, ea), (mb, eb), (mc, ec) = finite(a, f), finite(b, f), finite(c, f)
    product, exponent = ma * mb, ea + eb
    low = min(exponent, ec)
    total = (product << (exponent - low)) + (mc << (ec - low))
    both = sign if product == 0 and mc == 0 and sign == negative(c, f) else int(mode == "rm")
    return encode(total, low, f, mode, both)


def mul(a: int, b: int, f: Format, mode: str = "rn") -> int:
    minus_zero_or_zero = (negative(a, f) ^ negative(b, f)) * f.sign
    return fma(a, b, minus_zero_or_zero, f, mode)


def add(a: int, b: int, f: Format, mode: str = "rn") -> int:
    return fma(a, f.emax << (f.precision - 1), b, f, mode)


def sub(a: int, b: int, f: Format, mode: str = "rn") -> int:
    return add(a, b if is_nan(b, f) else b ^ f.sign, f, mode)


def div(a: int, b: int, f: Format, mode: str = "rn") -> int:
    if is_nan(a, f) or is_nan(b, f):
        return f.nan
    sign = (negative(a, f) ^ negative(b, f)) * f.sign
    a_zero, b_zero = (a & ~f.sign) == 0, (b & ~f.sign) == 0
    if (is_inf(a, f) and is_inf(b, f)) or (a_zero and b_zero):
        return f.nan
    if is_inf(a, f) or b_zero:
        return sign | f.infinity
    if is_inf(b, f) or a_zero:
        return sign
    (ma, ea), (mb, eb) = finite(a, f), finite(b, f)
    shift = f.precision + 4 + mb.bit_length()
    quotient, rest = divmod(abs(ma) << shift, abs(mb))
    m = quotient << 1 | (rest != 0)
    return encode(-m if sign else m, ea - eb - shift - 1, f, mode)


def rcp(a: int, f: Format, mode: str = "rn") -> int:
    return div(f.emax << (f.precision - 1), a, f, mode)


def sqrt(a: int, f: Format, mode: str = "rn") -> int:
    if is_nan(a, f) or (negative(a, f) and a != f.sign):
        return f.nan
    if is_inf(a, f) or (a & ~f.sign) == 0:
        return a
    m, e = finite(a, f)
    shift = 2 * f.precision + 8
    shift += (e - shift) & 1
    root = isqrt(m << shift)
    return encode(root << 1 | (root * root != m << shift), (e - shift) // 2 - 1, f, mode)


def saturate(a: int, f: Format) -> int:
    one = f.emax << (f.precision - 1)
    if is_nan(a, f) or negative(a, f):
        return 0
    return min(a, one)


def relu(a: int, f: Format) -> int:
    return 0 if negative(a, f) and not is_nan(a, f) else a


def order(a: int, f: Format) -> int:
    """Numbers in ascending order, -0 below +0."""
    return -(a & ~f.sign) - 1 if negative(a, f) else a


def minimum(a: int, b: int, f: Format, nan: bool = False) -> int:
    return _pick(a, b, f, nan, order(a, f) <= order(b, f))


def maximum(a: int, b: int, f: Format, nan: bool = False) -> int:
    return _pick(a, b, f, nan, order(a, f) >= order(b, f))


def _pick(a: int, b: int, f: Format, nan: bool, first: bool) -> int:
    a_nan, b_nan = is_nan(a, f), is_nan(b, f)
    if (a_nan and b_nan) or (nan and (a_nan or b_nan)):
        return f.nan
    if a_nan or b_nan:
        return b if a_nan else a
    return a if first else b


def convert(a: int, source: Format, target: Format, mode: str = "rn") -> int:
    if is_nan(a, source):
        return target.nan
    sign = negative(a, source)
    if is_inf(a, source):
        return sign * target.sign | target.infinity
    m, e = finite(a, source)
    return encode(m, e, target, mode, sign)


def to_integer(a: int, f: Format, bits: int, signed: bool, mode: str) -> int:
    """With the ISA's clamping; a NaN gives zero, or the top bit where either side has 64 bits."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if is_nan(a, f):
        return 1 << (bits - 1) if f.width == 64 or bits == 64 else 0
    if is_inf(a, f):
        return low if negative(a, f) else high
    m, e = finite(a, f)
    whole = shift_rounded(abs(m), -e, mode, int(m < 0))
    return max(low, min(high, -whole if m < 0 else whole))


def round_whole(a: int, f: Format, mode: str) -> int:
    if is_nan(a, f):
        return f.nan
    if is_inf(a, f):
        return a
    m, e = finite(a, f)
    whole = shift_rounded(abs(m), -e, mode, int(m < 0)) if e < 0 else abs(m) << e
    sign = negative(a, f)
    return encode(-whole if sign else whole, 0, f, "rn", sign)
