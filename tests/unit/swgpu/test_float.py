"""f32, f64, f16 and bf16 arithmetic against exact arithmetic with one rounding."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.unit.swgpu import soft
from tests.unit.swgpu.harness import Case, check, pairs
from tests.unit.swgpu.soft import FORMATS, Format

MODES = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
Bits = Callable[..., int]


def form(kind: str) -> Format:
    return FORMATS[kind.removesuffix("x2")]


def dressed(model: Bits, kind: str, ftz: bool = False, end: str = "") -> Bits:
    """Flushing of operands and result, and .sat or .relu, around a model; both halves of a pair."""
    f = form(kind)

    def run(*operands: int) -> int:
        result = model(*(soft.flush(x, f) if ftz else x for x in operands))
        if end == "sat":
            result = soft.saturate(result, f)
        if end == "relu":
            result = soft.relu(result, f)
        return soft.flush(result, f) if ftz else result

    return pairs(run) if kind.endswith("x2") else run


OPERATIONS: dict[str, tuple[Bits, int]] = {
    "add": (soft.add, 2),
    "sub": (soft.sub, 2),
    "mul": (soft.mul, 2),
    "fma": (soft.fma, 3),
    "div": (soft.div, 2),
    "rcp": (soft.rcp, 1),
    "sqrt": (soft.sqrt, 1),
}


def rounded(name: str, kind: str, mode: str, ftz: bool, sat: bool = False) -> Case:
    operation, arity = OPERATIONS[name]
    opcode = ".".join([name, mode, *(["ftz"] if ftz else []), *(["sat"] if sat else []), kind])
    model = dressed(partial(operation, f=form(kind), mode=mode), kind, ftz, "sat" if sat else "")
    return Case(opcode, (kind,) * arity, kind, model)


def half(name: str, kind: str, modifiers: str, end: str = "") -> Case:
    operation, arity = OPERATIONS[name]
    opcode = f"{name}{modifiers}.{kind}"
    return Case(opcode, (kind,) * arity, kind, dressed(partial(operation, f=form(kind)), kind, "ftz" in modifiers, end))


def half_cases(kind: str) -> list[Case]:
    cases = [half(name, kind, ".rn") for name in ("add", "sub", "mul", "fma")]
    cases.append(half("fma", kind, ".rn.relu", "relu"))
    if kind.startswith("f16"):
        for name in ("add", "sub", "mul", "fma"):
            cases += [half(name, kind, ".rn.ftz"), half(name, kind, ".rn.sat", "sat"), half(name, kind, ".rn.ftz.sat", "sat")]
        cases.append(half("fma", kind, ".rn.ftz.relu", "relu"))
    return cases


def extremes(kind: str, ftz: bool, nan: bool) -> list[Case]:
    f = form(kind)
    modifiers = (".ftz" if ftz else "") + (".NaN" if nan else "")
    return [
        Case(f"{name}{modifiers}.{kind}", (kind, kind), kind, dressed(partial(model, f=f, nan=nan), kind, ftz))
        for name, model in (("min", soft.minimum), ("max", soft.maximum))
    ]


def xorsign(kind: str, nan: bool) -> list[Case]:
    f = form(kind)

    def run(pick: Bits, a: int, b: int) -> int:
        result = pick(a & ~f.sign, b & ~f.sign, f, nan)
        return result if soft.is_nan(result, f) else result | (a ^ b) & f.sign

    modifiers = (".NaN" if nan else "") + ".xorsign.abs"
    return [
        Case(f"{name}{modifiers}.{kind}", (kind, kind), kind, dressed(partial(run, pick), kind))
        for name, pick in (("min", soft.minimum), ("max", soft.maximum))
    ]


def signs(kind: str, ftz: bool) -> list[Case]:
    """abs and neg keep a NaN, with any payload."""
    f = form(kind)
    modifier = ".ftz" if ftz else ""
    return [
        Case(f"abs{modifier}.{kind}", (kind,), kind, dressed(lambda a: a & ~f.sign, kind, ftz), any_nan=True),
        Case(f"neg{modifier}.{kind}", (kind,), kind, dressed(lambda a: a ^ f.sign, kind, ftz), any_nan=True),
    ]


def properties(kind: str) -> list[Case]:
    f = form(kind)
    least, infinity = 1 << (f.precision - 1), f.infinity
    tests: dict[str, Callable[[int], bool]] = {
        "finite": lambda m: m < infinity,
        "infinite": lambda m: m == infinity,
        "number": lambda m: m <= infinity,
        "notanumber": lambda m: m > infinity,
        "normal": lambda m: least <= m < infinity,
        "subnormal": lambda m: 0 < m < least,
    }
    return [Case(f"testp.{name}.{kind}", (kind,), "pred", lambda a, test=test: test(a & ~f.sign)) for name, test in tests.items()]


def copysign(kind: str) -> Case:
    f = form(kind)
    return Case(f"copysign.{kind}", (kind, kind), kind, lambda a, b: a & f.sign | b & ~f.sign)


def select_by_float(kind: str, ftz: bool) -> Case:
    f = FORMATS["f32"]

    def model(a: int, b: int, c: int) -> int:
        c = soft.flush(c, f) if ftz else c
        return a if not soft.is_nan(c, f) and (not soft.negative(c, f) or c == f.sign) else b

    return Case(f"slct{'.ftz' if ftz else ''}.{kind}.f32", (kind, kind, "f32"), kind, model)


CASES = [
    *(rounded(name, "f32", mode, ftz) for name in OPERATIONS for mode in MODES for ftz in (False, True)),
    *(rounded(name, "f32", mode, ftz, True) for name in ("add", "sub", "mul", "fma") for mode in MODES for ftz in (False, True)),
    *(rounded(name, "f64", mode, False) for name in OPERATIONS for mode in MODES),
    *(case for kind in HALVES for case in half_cases(kind)),
    *(
        case
        for kind in ("f32", "f16", "f16x2")
        for ftz in (False, True)
        for nan in (False, True)
        for case in extremes(kind, ftz, nan)
    ),
    *(case for kind in ("bf16", "bf16x2") for nan in (False, True) for case in extremes(kind, False, nan)),
    *extremes("f64", False, False),
    *(case for kind in ("f32", *HALVES) for nan in (False, True) for case in xorsign(kind, nan)),
    *(case for kind in ("f32", "f16", "f16x2") for case in signs(kind, True)),
    *(case for kind in ("f32", "f64", *HALVES) for case in signs(kind, False)),
    *(case for kind in ("f32", "f64") for case in properties(kind)),
    # No rounding named: to nearest.
    *(
        Case(f"{name}{modifiers}.f32", ("f32", "f32"), "f32", dressed(partial(model, f=soft.F32), "f32", "ftz" in modifiers, end))
        for name, model in (("add", soft.add), ("sub", soft.sub), ("mul", soft.mul))
        for modifiers, end in (("", ""), (".ftz", ""), (".sat", "sat"), (".ftz.sat", "sat"))
    ),
    *(
        Case(f"{name}.{kind}", (kind, kind), kind, dressed(partial(OPERATIONS[name][0], f=form(kind)), kind))
        for name in ("add", "sub", "mul")
        for kind in ("f64", "f16", "f16x2", "bf16", "bf16x2")
    ),
    *(
        Case(f"mad.{mode}.{kind}", (kind,) * 3, kind, partial(soft.fma, f=form(kind), mode=mode))
        for mode in MODES
        for kind in ("f32", "f64")
    ),
    copysign("f32"),
    copysign("f64"),
    *(select_by_float(kind, ftz) for kind in ("b32", "b64", "f64") for ftz in (False, True)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case, examples=10)
