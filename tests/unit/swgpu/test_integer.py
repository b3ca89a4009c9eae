"""Integer arithmetic against models in unbounded integers."""

from collections.abc import Callable

import pytest

from tests.unit.swgpu.harness import Case, bits_of, check

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
WORDS = ("u32", "s32", "u64", "s64")
SIGNED = ("s16", "s32", "s64")


def low(value: int, kind: str) -> int:
    return value & (1 << bits_of(kind)) - 1


def clamp(value: int, bits: int = 32) -> int:
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def wide_of(kind: str) -> str:
    return kind[0] + str(bits_of(kind) * 2)


def quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int | None:
    whole = quotient(a, b)
    return None if whole is None else a - whole * b


def low24(value: int, signed: bool) -> int:
    value &= 0xFFFFFF
    return value - (1 << 24) if signed and value >> 23 else value


def basic(kind: str) -> list[Case]:
    n = bits_of(kind)
    two, three = (kind, kind), (kind, kind, kind)
    return [
        Case(f"add.{kind}", two, kind, lambda a, b: a + b),
        Case(f"sub.{kind}", two, kind, lambda a, b: a - b),
        Case(f"mul.lo.{kind}", two, kind, lambda a, b: a * b),
        Case(f"mul.hi.{kind}", two, kind, lambda a, b: a * b >> n),
        Case(f"mad.lo.{kind}", three, kind, lambda a, b, c: a * b + c),
        Case(f"mad.hi.{kind}", three, kind, lambda a, b, c: (a * b >> n) + c),
        Case(f"div.{kind}", two, kind, quotient),
        Case(f"rem.{kind}", two, kind, remainder),
        Case(f"min.{kind}", two, kind, min),
        Case(f"max.{kind}", two, kind, max),
        Case(f"sad.{kind}", three, kind, lambda a, b, c: abs(a - b) + c),
    ]


def widening(kind: str) -> list[Case]:
    wide = wide_of(kind)
    return [
        Case(f"mul.wide.{kind}", (kind, kind), wide, lambda a, b: a * b),
        Case(f"mad.wide.{kind}", (kind, kind, wide), wide, lambda a, b, c: a * b + c),
    ]


def multiply24(kind: str) -> list[Case]:
    signed = kind == "s32"

    def product(a: int, b: int) -> int:
        return low24(a, signed) * low24(b, signed)

    cases = [
        Case(f"mul24.lo.{kind}", (kind, kind), kind, product),
        Case(f"mul24.hi.{kind}", (kind, kind), kind, lambda a, b: product(a, b) >> 16),
        Case(f"mad24.lo.{kind}", (kind, kind, kind), kind, lambda a, b, c: product(a, b) + c),
        Case(f"mad24.hi.{kind}", (kind, kind, kind), kind, lambda a, b, c: (product(a, b) >> 16) + c),
    ]
    if signed:
        # The upper 32 of 48 bits are the top word of a signed product.
        model = lambda a, b, c: clamp((product(a, b) >> 16) + c)  # noqa: E731
        cases.append(Case("mad24.hi.sat.s32", ("s32", "s32", "s32"), "s32", model))
    return cases


def element(value: int, index: int, bits: int, signed: bool) -> int:
    part = value >> index * bits & (1 << bits) - 1
    return part - (1 << bits) if signed and part >> (bits - 1) else part


def dots(left: str, right: str) -> list[Case]:
    signed_a, signed_b = left == "s32", right == "s32"
    operands = (left, right, "b32")

    def dp4a(a: int, b: int, c: int) -> int:
        return c + sum(element(a, i, 8, signed_a) * element(b, i, 8, signed_b) for i in range(4))

    def dp2a(a: int, b: int, c: int, first: int) -> int:
        return c + sum(element(a, i, 16, signed_a) * element(b, first + i, 8, signed_b) for i in range(2))

    return [
        Case(f"dp4a.{left}.{right}", operands, "b32", dp4a),
        Case(f"dp2a.lo.{left}.{right}", operands, "b32", lambda a, b, c: dp2a(a, b, c, 0)),
        Case(f"dp2a.hi.{left}.{right}", operands, "b32", lambda a, b, c: dp2a(a, b, c, 2)),
    ]


def carry_chains(kind: str) -> list[Case]:
    """Each chain's second half is the result: the first one's carry must reach it."""
    n = bits_of(kind)
    four = (kind, kind, kind, kind)
    t = "%t2" if n == 32 else "%w2"

    def chain(name: str, body: str, model: object) -> Case:
        return Case(f"{name}.{kind}", four, kind, model, body)  # type: ignore[arg-type]

    def u(value: int) -> int:
        return low(value, kind)

    return [
        chain(
            "addc",
            f"add.cc.{kind} {t}, {{a}}, {{b}}; addc.{kind} {{d}}, {{c}}, {{e}};",
            lambda a, b, c, e: c + e + (u(a) + u(b) >> n),
        ),
        chain(
            "subc", f"sub.cc.{kind} {t}, {{a}}, {{b}}; subc.{kind} {{d}}, {{c}}, {{e}};", lambda a, b, c, e: c - e - (u(a) < u(b))
        ),
        chain(
            "addc.cc",
            f"add.cc.{kind} {t}, {{a}}, {{b}}; addc.cc.{kind} {t}, {{c}}, {{e}}; addc.{kind} {{d}}, 0, 0;",
            lambda a, b, c, e: u(c) + u(e) + (u(a) + u(b) >> n) >> n,
        ),
        chain(
            "subc.cc",
            f"sub.cc.{kind} {t}, {{a}}, {{b}}; subc.cc.{kind} {t}, {{c}}, {{e}}; subc.{kind} {{d}}, 0, 0;",
            lambda a, b, c, e: -(u(c) < u(e) + (u(a) < u(b))),
        ),
        chain(
            "madc.hi",
            f"mad.lo.cc.{kind} {t}, {{a}}, {{b}}, {{c}}; madc.hi.{kind} {{d}}, {{a}}, {{b}}, {{e}};",
            lambda a, b, c, e: (a * b >> n) + e + (u(a * b) + u(c) >> n),
        ),
        chain(
            "madc.lo",
            f"mad.hi.cc.{kind} {t}, {{a}}, {{b}}, {{c}}; madc.lo.{kind} {{d}}, {{a}}, {{b}}, {{e}};",
            lambda a, b, c, e: a * b + e + (u(a * b >> n) + u(c) >> n),
        ),
        chain(
            "madc.lo.cc",
            f"mad.lo.cc.{kind} {t}, {{a}}, {{b}}, {{c}}; madc.lo.cc.{kind} {t}, {{a}}, {{b}}, {{e}}; addc.{kind} {{d}}, 0, 0;",
            lambda a, b, c, e: u(a * b) + u(e) + (u(a * b) + u(c) >> n) >> n,
        ),
        chain(
            "madc.hi.cc",
            f"mad.lo.cc.{kind} {t}, {{a}}, {{b}}, {{c}}; madc.hi.cc.{kind} {t}, {{a}}, {{b}}, {{e}}; addc.{kind} {{d}}, 0, 0;",
            lambda a, b, c, e: u(a * b >> n) + u(e) + (u(a * b) + u(c) >> n) >> n,
        ),
    ]


def halves(name: str, kind: str, model: Callable[[int, int], int]) -> Case:
    """Two 16-bit integers in one register."""
    signed = kind[0] == "s"

    def both(a: int, b: int) -> int:
        parts = (model(element(a, i, 16, signed), element(b, i, 16, signed)) & 0xFFFF for i in range(2))
        return sum(part << 16 * i for i, part in enumerate(parts))

    return Case(f"{name}.{kind}", ("b32", "b32"), "b32", both)


def total(a: int, b: int) -> int:
    return a + b


CASES = [
    *(halves(name, kind, model) for kind in ("u16x2", "s16x2") for name, model in (("add", total), ("min", min), ("max", max))),
    Case("min.relu.s32", ("s32", "s32"), "s32", lambda a, b: max(min(a, b), 0)),
    Case("max.relu.s32", ("s32", "s32"), "s32", lambda a, b: max(a, b, 0)),
    *(case for kind in TYPES for case in basic(kind)),
    *(case for kind in TYPES[:4] for case in widening(kind)),
    *(Case(f"abs.{kind}", (kind,), kind, abs) for kind in SIGNED),
    *(Case(f"neg.{kind}", (kind,), kind, lambda a: -a) for kind in SIGNED),
    Case("add.sat.s32", ("s32", "s32"), "s32", lambda a, b: clamp(a + b)),
    Case("sub.sat.s32", ("s32", "s32"), "s32", lambda a, b: clamp(a - b)),
    Case("mad.hi.sat.s32", ("s32", "s32", "s32"), "s32", lambda a, b, c: clamp((a * b >> 32) + c)),
    *(case for kind in ("u32", "s32") for case in multiply24(kind)),
    *(case for a in ("u32", "s32") for b in ("u32", "s32") for case in dots(a, b)),
    *(case for kind in WORDS for case in carry_chains(kind)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case)
