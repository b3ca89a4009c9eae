"""Warp-wide instructions: every warp of 32 lanes against a model over all its lanes."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.swgpu.harness import Case, Lanes, as_operand, check_examples, run

Row = list[int]
Model = Callable[..., Row]
EVERYONE = 0xFFFFFFFF
FULL = "0xffffffff"


def verify_rows(case: Case, model: Model, inputs: list[Lanes]) -> None:
    actual = run(case, inputs).tolist()
    columns = [as_operand(values, kind) for values, kind in zip(inputs, case.operands)]
    for start in range(0, len(actual), 32):
        expected = [value & EVERYONE for value in model(*(column[start : start + 32] for column in columns))]
        assert actual[start : start + 32] == expected, f"{case.opcode}, lanes from {start}: {columns}"


def check_rows(case: Case, model: Model, reduce: int | None = None) -> None:
    """`reduce`: operands modulo this, so that equal values occur."""

    def test(inputs: list[Lanes]) -> None:
        if reduce is not None:
            inputs = [(values % reduce).astype(values.dtype) for values in inputs]
        verify_rows(case, model, inputs)

    check_examples(case.operands, test)


def unused(*_: int) -> int:
    raise AssertionError("rows have models of their own")


def shuffle_source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane to read from and whether it is in range, as the ISA's pseudocode has it."""
    clamp, mask, b = c & 31, c >> 8 & 31, b & 31
    most = lane & mask | clamp & ~mask
    least = lane & mask
    source, inside = {
        "up": (lane - b, lane - b >= most),
        "down": (lane + b, lane + b <= most),
        "bfly": (lane ^ b, lane ^ b <= most),
        "idx": (least | b & ~mask & 31, (least | b & ~mask & 31) <= most),
    }[mode]
    return (source, inside) if inside else (lane, False)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode: str) -> None:
    def values(a: Row, b: Row, c: Row) -> Row:
        return [a[shuffle_source(mode, lane, b[lane], c[lane])[0]] for lane in range(32)]

    def inside(a: Row, b: Row, c: Row) -> Row:
        return [int(shuffle_source(mode, lane, b[lane], c[lane])[1]) for lane in range(32)]

    operands = ("b32", "b32", "b32")
    body = f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}, {FULL};"
    check_rows(Case(f"shfl.sync.{mode}.b32", operands, "b32", unused, body), values)
    body = f"shfl.sync.{mode}.b32 %t2|%q0, {{a}}, {{b}}, {{c}}, {FULL}; selp.u32 {{d}}, 1, 0, %q0;"
    check_rows(Case(f"shfl.sync.{mode}.b32 p", operands, "b32", unused, body), inside)


@pytest.mark.parametrize("width", [2, 8, 16, 32])
def test_shfl_in_segments(width: int) -> None:
    c = (32 - width) << 8
    for mode, clamp in (("down", 31), ("up", 0), ("bfly", 31), ("idx", 31)):
        body = f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {c | clamp}, {FULL};"
        case = Case(f"shfl.{mode}", ("b32", "b32"), "b32", unused, body)
        check_rows(case, lambda a, b, mode=mode, clamp=clamp: [a[shuffle_source(mode, i, b[i], c | clamp)[0]] for i in range(32)])


def ballot(p: Row) -> int:
    return sum(bool(value) << lane for lane, value in enumerate(p))


VOTES: dict[str, Callable[[Row], int]] = {
    "all": lambda p: int(all(p)),
    "any": lambda p: int(any(p)),
    "uni": lambda p: int(all(p) or not any(p)),
}


@pytest.mark.parametrize("mode", VOTES)
def test_vote(mode: str) -> None:
    for bound in (1, 2, None):
        body = f"setp.ne.u32 %q0, {{a}}, 0; vote.sync.{mode}.pred {{d}}, %q0, {FULL};"
        check_rows(Case(f"vote.sync.{mode}.pred", ("u32",), "pred", unused, body), lambda a: [VOTES[mode](a)] * 32, bound)
    ones = [np.ones(32, np.uint32)]
    verify_rows(Case("vote", ("u32",), "pred", unused, body), lambda a: [VOTES[mode](a)] * 32, ones)


def test_ballot_and_activemask() -> None:
    body = f"vote.sync.ballot.b32 {{d}}, {{a}}, {FULL};"
    check_rows(Case("vote.sync.ballot.b32", ("pred",), "b32", unused, body), lambda p: [ballot(p)] * 32)
    body = "mov.b32 {d}, 0; @{a} activemask.b32 {d};"
    check_rows(Case("activemask.b32", ("pred",), "b32", unused, body), lambda p: [ballot(p) if value else 0 for value in p])


def test_members_are_those_of_the_mask() -> None:
    """Half of the lanes vote while the others do something else."""
    body = "mov.b32 {d}, 7; setp.lt.u32 %q0, %t0, 16; @!%q0 bra skip; vote.sync.ballot.b32 {d}, {a}, 0xffff; skip:"
    check_rows(Case("vote.sync.ballot.b32", ("pred",), "b32", unused, body), lambda p: [ballot(p) & 0xFFFF] * 16 + [7] * 16)


def test_elect() -> None:
    """Exactly one lane is chosen, and all are told which."""
    body = f"elect.sync %t2|%q0, {FULL}; selp.u32 %t3, 256, 0, %q0; or.b32 {{d}}, %t2, %t3;"
    result = run(Case("elect.sync", ("u32",), "u32", unused, body), [np.zeros(32, np.uint32)]).tolist()
    [chosen] = {value & 31 for value in result}
    assert [lane for lane, value in enumerate(result) if value & 256] == [chosen]


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_match(kind: str) -> None:
    def any_of(a: Row) -> Row:
        return [ballot([int(other == value) for other in a]) for value in a]

    def all_of(a: Row) -> Row:
        return [EVERYONE if len(set(a)) == 1 else 0] * 32

    for bound in (1, 3, None):
        check_rows(Case("match.any", (kind,), "b32", unused, f"match.any.sync.{kind} {{d}}, {{a}}, {FULL};"), any_of, bound)
        check_rows(Case("match.all", (kind,), "b32", unused, f"match.all.sync.{kind} {{d}}|%q0, {{a}}, {FULL};"), all_of, bound)
        body = f"match.all.sync.{kind} %t2|%q0, {{a}}, {FULL}; selp.u32 {{d}}, 1, 0, %q0;"
        check_rows(Case("match.all p", (kind,), "b32", unused, body), lambda a: [int(len(set(a)) == 1)] * 32, bound)


def fold(function: Callable[[int, int], int]) -> Callable[[Row], int]:
    def run_over(values: Row) -> int:
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return result

    return run_over


REDUX: dict[str, Callable[[Row], int]] = {
    "add": sum,
    "min": min,
    "max": max,
    "and": fold(lambda a, b: a & b),
    "or": fold(lambda a, b: a | b),
    "xor": fold(lambda a, b: a ^ b),
}


@pytest.mark.parametrize(
    "opcode", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"]
)
def test_redux(opcode: str) -> None:
    name, kind = opcode.split(".")
    case = Case(opcode, (kind,), kind, unused, f"redux.sync.{opcode} {{d}}, {{a}}, {FULL};")
    check_rows(case, lambda a: [REDUX[name](a)] * 32)
