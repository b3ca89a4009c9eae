"""setp and set: all comparisons, ordered and unordered, with and without a second predicate."""

from collections.abc import Callable

import pytest

from tests.unit.swgpu import soft
from tests.unit.swgpu.harness import Case, bits_of, check
from tests.unit.swgpu.soft import FORMATS

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}
TRUTH = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "u16": 0xFFFF, "s16": 0xFFFF, "f16": 0x3C00, "bf16": 0x3F80}


def float_compare(name: str, kind: str, ftz: bool = False) -> Callable[[int, int], bool]:
    f = FORMATS[kind]

    def model(a: int, b: int) -> bool:
        if ftz:
            a, b = soft.flush(a, f), soft.flush(b, f)
        unordered = soft.is_nan(a, f) or soft.is_nan(b, f)
        if name in {"num", "nan"}:
            return unordered == (name == "nan")
        if unordered:
            return name.endswith("u") and name not in COMPARE
        x, y = (-(v & ~f.sign) if v & f.sign else v for v in (a, b))
        return COMPARE[name if name in COMPARE else name[:-1]](x, y)

    return model


FLOAT_NAMES = (*COMPARE, *(name + "u" for name in COMPARE), "num", "nan")


def integer_cases(kind: str) -> list[Case]:
    names = ("eq", "ne") if kind[0] == "b" else tuple(COMPARE)
    cases = [Case(f"setp.{name}.{kind}", (kind, kind), "pred", COMPARE[name]) for name in names]
    if kind[0] == "u":
        cases += [Case(f"setp.{name}.{kind}", (kind, kind), "pred", COMPARE[same]) for name, same in UNSIGNED.items()]
    return cases


def combined(name: str, kind: str, model: Callable[[int, int], bool], combine: str) -> Case:
    """Both predicates of setp p|q, a, b, c: the second has the inverse comparison."""

    def both(a: int, b: int, c: bool) -> int:
        result, inverse = (COMBINE[combine](value, c) for value in (model(a, b), not model(a, b)))
        return result | inverse << 1

    body = (
        f"setp.{name}.{combine}.{kind} %q0|%q1, {{a}}, {{b}}, {{c}}; "
        "selp.u32 %t2, 1, 0, %q0; selp.u32 %t3, 2, 0, %q1; or.b32 {d}, %t2, %t3;"
    )
    return Case(f"setp.{name}.{combine}.{kind}", (kind, kind, "pred"), "u32", both, body)


def truth(name: str, to: str, kind: str, model: Callable[[int, int], bool], combine: str = "") -> Case:
    if combine:
        return Case(
            f"set.{name}.{combine}.{to}.{kind}",
            (kind, kind, "pred"),
            to,
            lambda a, b, c: TRUTH[to] * COMBINE[combine](model(a, b), c),
        )
    return Case(f"set.{name}.{to}.{kind}", (kind, kind), to, lambda a, b: TRUTH[to] * model(a, b))


def half_pair(name: str, kind: str) -> Case:
    one = float_compare(name, kind.removesuffix("x2"))
    body = f"setp.{name}.{kind} %q0|%q1, {{a}}, {{b}}; selp.u32 %t2, 1, 0, %q0; selp.u32 %t3, 2, 0, %q1; or.b32 {{d}}, %t2, %t3;"
    return Case(
        f"setp.{name}.{kind}", (kind, kind), "u32", lambda a, b: one(a & 0xFFFF, b & 0xFFFF) | one(a >> 16, b >> 16) << 1, body
    )


def half_pair_truth(name: str, kind: str) -> Case:
    one = kind.removesuffix("x2")
    model = float_compare(name, one)
    value = TRUTH[one]
    return Case(
        f"set.{name}.{kind}.{kind}",
        (kind, kind),
        kind,
        lambda a, b: value * model(a & 0xFFFF, b & 0xFFFF) | value * model(a >> 16, b >> 16) << 16,
    )


INTEGERS = tuple(f"{letter}{n}" for letter in "bus" for n in (16, 32, 64))
CASES = [
    *(case for kind in INTEGERS for case in integer_cases(kind)),
    *(
        Case(f"setp.{name}.{kind}", (kind, kind), "pred", float_compare(name, kind))
        for kind in ("f32", "f64", "f16", "bf16")
        for name in FLOAT_NAMES
    ),
    *(Case(f"setp.{name}.ftz.f32", ("f32", "f32"), "pred", float_compare(name, "f32", True)) for name in FLOAT_NAMES),
    *(combined(name, "s32", COMPARE[name], combine) for name in ("lt", "ne") for combine in COMBINE),
    *(combined(name, "f32", float_compare(name, "f32"), combine) for name in ("lt", "geu", "nan") for combine in COMBINE),
    *(
        truth(name, to, kind, COMPARE[name])
        for name in ("eq", "lt")
        for to in ("u32", "s32", "f32")
        for kind in ("u32", "s32", "s64", "u16")
    ),
    *(
        truth(name, to, kind, float_compare(name, kind))
        for name in ("lt", "neu")
        for to in ("u32", "f32")
        for kind in ("f32", "f64")
    ),
    *(truth("ge", "u32", "s32", COMPARE["ge"], combine) for combine in COMBINE),
    *(truth(name, to, "f16", float_compare(name, "f16")) for name in ("lt", "equ") for to in ("f16", "u16", "u32")),
    *(truth(name, to, "bf16", float_compare(name, "bf16")) for name in ("gt", "ltu") for to in ("bf16", "u16", "u32")),
    *(half_pair(name, kind) for name in FLOAT_NAMES for kind in ("f16x2", "bf16x2")),
    *(half_pair_truth(name, kind) for name in ("eq", "leu") for kind in ("f16x2", "bf16x2")),
]


def test_every_width_is_covered() -> None:
    assert {bits_of(case.operands[0]) for case in CASES} == {16, 32, 64}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case, examples=10)
