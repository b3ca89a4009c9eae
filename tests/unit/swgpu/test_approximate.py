"""Approximate functions: within the error bounds of the ISA, and exact where it says so."""

import math
import struct
from collections.abc import Callable

import pytest

from tests.unit.swgpu import soft
from tests.unit.swgpu.harness import Case, check, number
from tests.unit.swgpu.soft import BF16, F16, F32, F64, FORMATS, Format

NAN = float("nan")
INF = float("inf")


def divide(a: float, b: float) -> float:
    if b == 0:
        return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def safely(function: Callable[[float], float], zero: float = NAN) -> Callable[[float], float]:
    def run(a: float) -> float:
        if a == 0 and not math.isnan(zero):
            return math.copysign(zero, a) if zero == INF and function is inverse_root else zero
        try:
            return function(a)
        except ValueError:
            return NAN
        except OverflowError:
            return INF

    return run


def inverse_root(a: float) -> float:
    return 1 / math.sqrt(a)


FUNCTIONS: dict[str, Callable[..., float]] = {
    "rcp": lambda a: divide(1.0, a),
    "sqrt": safely(math.sqrt),
    "rsqrt": safely(inverse_root, INF),
    "ex2": safely(lambda a: math.pow(2.0, a)),
    "lg2": safely(math.log2, -INF),
    "sin": safely(math.sin),
    "cos": safely(math.cos),
    "tanh": safely(math.tanh),
    "div": divide,
}


def bits_of_float(value: float, f: Format) -> int:
    """The nearest value of the format."""
    bits = int.from_bytes(struct.pack("<d", value), "little")
    return soft.convert(bits, F64, f)


def near(f: Format, relative: float, absolute: float, ftz: bool) -> Callable[[int, int], bool]:
    """Equal classes; else the error is within relative or absolute bounds. One step of the format is always allowed."""

    def close(expected: int, actual: int) -> bool:
        if soft.is_nan(expected, f) or soft.is_nan(actual, f):
            return expected == actual if f is not F64 else soft.is_nan(expected, f) and soft.is_nan(actual, f)
        if ftz and soft.is_subnormal(actual, f):
            return False
        x, y = number(expected, f), number(actual, f)
        if math.isinf(x) or math.isinf(y):
            return abs(soft.order(expected, f) - soft.order(actual, f)) <= 2
        least = 2.0 ** (1 - f.emax)
        return abs(x - y) <= max(abs(x) * relative, absolute, least * 2.0 ** (2 - f.precision), least if ftz else 0.0)

    return close


def approximate(name: str, kind: str, modifiers: str, relative: float, absolute: float = 0.0, domain: float = INF) -> Case:
    f = FORMATS[kind]
    ftz = "ftz" in modifiers and kind != "f64"
    arity = 2 if name == "div" else 1

    def model(*operands: int) -> int | None:
        flushed = [soft.flush(a, f) if ftz else a for a in operands]
        if any(soft.is_nan(a, f) for a in flushed):
            return f.nan
        values = [number(a, f) for a in flushed]
        if any(abs(value) > domain and not math.isinf(value) for value in values):
            return None
        result = bits_of_float(FUNCTIONS[name](*values), f)
        result = f.nan if soft.is_nan(result, f) else result
        return soft.flush(result, f) if ftz else result

    return Case(f"{name}{modifiers}.{kind}", (kind,) * arity, kind, model, close=near(f, relative, absolute, ftz))


ULP = 2.0**-23
CASES = [
    *(approximate("rcp", "f32", m, 1 * ULP) for m in (".approx", ".approx.ftz")),
    *(approximate("sqrt", "f32", m, 1.5 * ULP) for m in (".approx", ".approx.ftz")),
    *(approximate("rsqrt", "f32", m, 2.0**-22.9) for m in (".approx", ".approx.ftz")),
    *(approximate("div", "f32", m, 2 * ULP, domain=2.0**126) for m in (".approx", ".approx.ftz", ".full", ".full.ftz")),
    *(approximate("ex2", "f32", m, 2 * ULP) for m in (".approx", ".approx.ftz")),
    *(approximate("lg2", "f32", m, 2.0**-22, 2.0**-22) for m in (".approx", ".approx.ftz")),
    # Beyond this the ISA gives no bound that a double's sine could be held to.
    *(
        approximate(name, "f32", m, 0.0, 2.0**-20.5, domain=2.0**20)
        for name in ("sin", "cos")
        for m in (".approx", ".approx.ftz")
    ),
    approximate("tanh", "f32", ".approx", 2.0**-11),
    approximate("rsqrt", "f64", ".approx", 2.0**-20),
    approximate("rsqrt", "f64", ".approx.ftz", 2.0**-20),
    approximate("rcp", "f64", ".approx.ftz", 2.0**-20),
    approximate("ex2", "f16", ".approx", 2.0**-9.9),
    approximate("tanh", "f16", ".approx", 2.0**-10.987 * 1.01, 2.0**-10.987),
    approximate("ex2", "bf16", ".approx.ftz", 2.0**-7),
    approximate("tanh", "bf16", ".approx", 2.0**-8 * 1.01, 2.0**-8),
]


def test_formats_are_those_of_the_isa() -> None:
    assert [(number(f.infinity - 1, f)) for f in (F16, BF16, F32)] == [
        65504.0,
        2.0**127 * (2 - 2.0**-7),
        2.0**127 * (2 - 2.0**-23),
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case)
