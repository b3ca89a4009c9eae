"""cvt between all pairs of types, with rounding, .sat, .ftz and .relu."""

from collections.abc import Callable

import pytest

from tests.unit.swgpu import soft
from tests.unit.swgpu.harness import Case, bits_of, check
from tests.unit.swgpu.soft import FORMATS

INTEGERS = tuple(f"{letter}{n}" for n in (8, 16, 32, 64) for letter in "us")
FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
Bits = Callable[..., int]


def limits(kind: str) -> tuple[int, int]:
    n = bits_of(kind)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if kind[0] == "s" else (0, (1 << n) - 1)


def wrapped(value: int, kind: str) -> int:
    """The value as a register holds it: a type smaller than the register is extended by its sign."""
    n = bits_of(kind)
    value &= (1 << n) - 1
    return value - (1 << n) if kind[0] == "s" and value >> (n - 1) else value


def in_register(kind: str) -> str:
    return f"{kind[0]}32" if bits_of(kind) == 8 else kind


def integers(to: str, source: str, sat: bool) -> Case:
    low, high = limits(to)

    def model(a: int) -> int:
        return max(low, min(high, a)) if sat else wrapped(a, to)

    return Case(f"cvt{'.sat' if sat else ''}.{to}.{source}", (source,), in_register(to), model)


def to_integer(to: str, source: str, mode: str, ftz: bool = False) -> Case:
    f = FORMATS[source]

    def model(a: int) -> int:
        a = soft.flush(a, f) if ftz else a
        return wrapped(soft.to_integer(a, f, bits_of(to), to[0] == "s", mode), to)

    return Case(f"cvt.{mode}i{'.ftz' if ftz else ''}.{to}.{source}", (source,), in_register(to), model)


def to_float(to: str, source: str, mode: str, sat: bool = False) -> Case:
    f = FORMATS[to]

    def model(a: int) -> int:
        bits = soft.encode(a, 0, f, mode)
        return soft.saturate(bits, f) if sat else bits

    return Case(f"cvt.{mode}{'.sat' if sat else ''}.{to}.{source}", (source,), to, model)


def between(to: str, source: str, mode: str, ftz: bool = False, sat: bool = False) -> Case:
    f, g = FORMATS[source], FORMATS[to]

    def model(a: int) -> int:
        a = soft.flush(a, f) if ftz and source == "f32" else a
        bits = soft.convert(a, f, g, mode or "rn")
        bits = soft.saturate(bits, g) if sat else bits
        return soft.flush(bits, g) if ftz and to == "f32" else bits

    modifiers = "".join("." + word for word in (mode, "ftz" * ftz, "sat" * sat) if word)
    return Case(f"cvt{modifiers}.{to}.{source}", (source,), to, model)


def whole(kind: str, mode: str, ftz: bool = False, sat: bool = False) -> Case:
    f = FORMATS[kind]

    def model(a: int) -> int:
        bits = soft.round_whole(soft.flush(a, f) if ftz else a, f, mode)
        return soft.saturate(bits, f) if sat else bits

    modifiers = "".join("." + word for word in ("ftz" * ftz, "sat" * sat) if word)
    return Case(f"cvt.{mode}i{modifiers}.{kind}.{kind}", (kind,), kind, model)


def half_of(to: str, mode: str, relu: bool) -> Bits:
    f = FORMATS[to.removesuffix("x2")]

    def one(a: int) -> int:
        bits = soft.convert(a, FORMATS["f32"], f, mode)
        return soft.relu(bits, f) if relu else bits

    return (lambda a, b: one(a) << 16 | one(b)) if to.endswith("x2") else one


def halves(to: str, mode: str, relu: bool) -> Case:
    operands = ("f32", "f32") if to.endswith("x2") else ("f32",)
    return Case(f"cvt.{mode}{'.relu' if relu else ''}.{to}.f32", operands, to, half_of(to, mode, relu))


def pack(to: str) -> Case:
    low, high = limits(to)
    n = bits_of(to)

    def clamp(a: int) -> int:
        return max(low, min(high, a)) & (1 << n) - 1

    if n == 16:
        return Case(f"cvt.pack.sat.{to}.s32", ("s32", "s32"), "b32", lambda a, b: clamp(a) << 16 | clamp(b))
    return Case(
        f"cvt.pack.sat.{to}.s32.b32", ("s32", "s32", "b32"), "b32", lambda a, b, c: clamp(a) << 8 | clamp(b) | (c & 0xFFFF) << 16
    )


def tf32(mode: str) -> Case:
    def model(a: int) -> int:
        return soft.convert(a, FORMATS["f32"], FORMATS["tf32"], mode) << 13

    # The lower 13 bits of a tf32 in a register are open.
    return Case(
        f"cvt.{mode}.tf32.f32",
        ("f32",),
        "b32",
        model,
        close=lambda x, y: x >> 13 == y >> 13 or (soft.is_nan(x, soft.F32) and soft.is_nan(y, soft.F32)),
    )


NARROWING = [(to, source) for to in FLOATS for source in FLOATS if FORMATS[to].precision < FORMATS[source].precision]
WIDENING = [("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "bf16")]
CASES = [
    *(integers(to, source, sat) for to in INTEGERS for source in INTEGERS for sat in (False, True)),
    *(to_integer(to, source, mode) for to in INTEGERS for source in FLOATS for mode in MODES),
    *(to_integer(to, "f32", mode, True) for to in ("u32", "s32", "s64") for mode in MODES),
    *(to_float(to, source, mode) for to in FLOATS for source in INTEGERS for mode in MODES),
    *(to_float(to, "s32", "rn", True) for to in ("f32", "f64", "f16")),
    *(between(to, source, mode) for to, source in NARROWING for mode in MODES),
    *(between("f16", "bf16", mode) for mode in MODES),
    *(between(to, source, "") for to, source in WIDENING),
    *(between(to, source, mode, True) for to, source in (("f32", "f64"), ("f16", "f32")) for mode in MODES),
    *(between(to, source, "", True) for to, source in (("f64", "f32"), ("f32", "f16"))),
    *(between(to, source, "rn", False, True) for to, source in (("f32", "f64"), ("f16", "f32"))),
    *(whole(kind, mode) for kind in ("f16", "f32", "f64") for mode in MODES),
    *(whole("f32", mode, ftz, sat) for mode in MODES for ftz, sat in ((True, False), (False, True))),
    *(halves(to, mode, relu) for to in ("f16", "bf16", "f16x2", "bf16x2") for mode in ("rn", "rz") for relu in (False, True)),
    *(pack(to) for to in ("u16", "s16", "u8", "s8")),
    tf32("rna"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case, examples=8)
