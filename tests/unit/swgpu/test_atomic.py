"""atom and red: what all lanes leave in memory, and that the values returned fit one order of the lanes."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.swgpu import soft
from tests.unit.swgpu.harness import Lanes, as_operand, bits_of, buffer, check_examples, device, kernel_text, unsigned
from tests.unit.swgpu.soft import FORMATS

Step = Callable[[int, int], int]
CELLS = 4


def minus_if(a: int, b: int) -> int:
    return b if a == 0 or a > b else a - 1


STEPS: dict[str, Step] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": minus_if,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exch": lambda a, b: b,
}
OPCODES = [
    *(f"add.{kind}" for kind in ("u32", "s32", "u64")),
    *(f"{name}.{kind}" for name in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    "inc.u32",
    "dec.u32",
    *(f"{name}.{kind}" for name in ("and", "or", "xor") for kind in ("b32", "b64")),
]


def text(instruction: str, kind: str) -> str:
    """Operand 0: a value per lane. Operand 1: an address's cell per lane. Memory: parameter 3. The result: the old value."""
    body = f"ld.param.u64 %base, [p3]; mad.wide.u32 %w0, {{b}}, {bits_of(kind) // 8}, %base; {instruction}"
    whole = kernel_text((kind, "u32"), kind, body)
    return whole.replace(".param .u64 p2)", ".param .u64 p2, .param .u64 p3)")


class Atomic:
    def __init__(self, instruction: str, kind: str) -> None:
        self._function = device().compile(text(instruction, kind))
        self._kind = kind

    def __call__(self, values: Lanes, cells: Lanes, memory: Lanes) -> tuple[Lanes, Lanes]:
        """Returned values and memory afterwards."""
        for i, array in enumerate((values, cells, memory)):
            device().write(buffer(i + 1), array)
        device().launch(self._function, len(values) // 32, 32, [buffer(i) for i in range(4)])
        old, after = np.zeros_like(values), np.zeros_like(memory)
        device().read(buffer(0), old)
        device().read(buffer(3), after)
        return old, after


def split(inputs: list[Lanes], kind: str) -> tuple[Lanes, Lanes, Lanes]:
    values, cells = inputs[0], (inputs[1] % CELLS).astype(np.uint32)
    return values, cells, values[::-1][:CELLS].copy()


@pytest.mark.parametrize("opcode", OPCODES)
@pytest.mark.parametrize("space", [".global", ""])
def test_atom(opcode: str, space: str) -> None:
    name, kind = opcode.split(".")
    atomic = Atomic(f"atom{space}.{opcode} {{d}}, [%w0], {{a}};", kind)
    mask = (1 << bits_of(kind)) - 1

    def test(inputs: list[Lanes]) -> None:
        values, cells, memory = split(inputs, kind)
        old, after = atomic(values, cells, memory)
        for cell in range(CELLS):
            mine = [lane for lane in range(len(values)) if cells[lane] == cell]
            chain(as_operand(values[mine], kind), as_operand(old[mine], kind), as_operand(memory, kind)[cell], int(after[cell]))

    def chain(operands: list[int], returned: list[int], now: int, last: int) -> None:
        """Some order of the lanes explains every returned value: each step takes a lane whose old value is the present one."""
        waiting = list(zip(returned, operands))
        if not any_order(waiting, now, last):
            raise AssertionError(f"{opcode}: no order explains {waiting} from {now} to {last}")

    def any_order(waiting: list[tuple[int, int]], now: int, last: int) -> bool:
        step = STEPS[name]
        waiting = list(waiting)
        while waiting:
            # A step that changes nothing may come first at no loss.
            ready = [pair for pair in waiting if pair[0] == now]
            if not ready:
                return False
            idle = [pair for pair in ready if wrapped(step(now, pair[1])) == now]
            chosen = idle[0] if idle else ready[0]
            if not idle and len(ready) > 1:
                return any(
                    any_order([p for i, p in enumerate(waiting) if i != waiting.index(pair)], wrapped(step(now, pair[1])), last)
                    for pair in dict.fromkeys(ready)
                )
            waiting.remove(chosen)
            now = wrapped(step(now, chosen[1]))
        return now & mask == last

    def wrapped(value: int) -> int:
        value &= mask
        return value - mask - 1 if kind[0] == "s" and value > mask >> 1 else value

    check_examples((kind, "u32"), test, examples=15, lanes=32)


@pytest.mark.parametrize("opcode", OPCODES)
def test_red(opcode: str) -> None:
    """Operations that give the same in any order: one lane per cell for the others."""
    name, kind = opcode.split(".")
    atomic = Atomic(f"red.global.{opcode} [%w0], {{a}}; mov.b{bits_of(kind)} {{d}}, {{a}};", kind)
    mask = (1 << bits_of(kind)) - 1

    def test(inputs: list[Lanes]) -> None:
        values, memory = inputs[0], inputs[0][::-1].copy()
        _, after = atomic(values, np.arange(len(values), dtype=np.uint32), memory)
        expected = [STEPS[name](m, v) & mask for m, v in zip(as_operand(memory, kind), as_operand(values, kind))]
        assert after.tolist() == expected

    check_examples((kind, "u32"), test, examples=15)


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_exchange_and_compare(kind: str) -> None:
    exchange = Atomic(f"atom.global.exch.{kind} {{d}}, [%w0], {{a}};", kind)
    swap = Atomic(f"atom.global.cas.{kind} {{d}}, [%w0], {{a}}, 5;", kind)

    def test(inputs: list[Lanes]) -> None:
        values, cells, memory = split(inputs, kind)
        old, after = exchange(values, cells, memory)
        for cell in range(CELLS):
            mine = cells == cell
            assert sorted([*old[mine].tolist(), int(after[cell])]) == sorted([*values[mine].tolist(), int(memory[cell])])
        own = np.arange(len(values), dtype=np.uint32)
        memory = np.where(cells < 2, values, values[::-1])
        old, after = swap(values, own, memory)
        assert old.tolist() == memory.tolist()
        assert after.tolist() == np.where(memory == values, 5, memory).tolist()

    check_examples((kind, "u32"), test)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f16x2", "bf16x2"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_float_extremes(name: str, kind: str) -> None:
    f = FORMATS[kind.removesuffix("x2")]
    pick = soft.minimum if name == "min" else soft.maximum
    atomic = Atomic(f"atom.global.{name}.noftz.{kind} {{d}}, [%w0], {{a}};", kind)
    half_mask = (1 << f.width) - 1

    def test(inputs: list[Lanes]) -> None:
        values, memory = inputs[0], np.roll(inputs[0], 3)
        old, after = atomic(values, np.arange(len(values), dtype=np.uint32), memory)
        assert old.tolist() == memory.tolist()
        for a, b, result in zip(memory.tolist(), values.tolist(), after.tolist()):
            for at in range(0, bits_of(kind), f.width):
                x, y, got = (v >> at & half_mask for v in (a, b, result))
                assert got == pick(x, y, f), f"{name} of {x:#x} and {y:#x} is {got:#x}"

    check_examples((kind, "u32"), test)


@pytest.mark.parametrize(
    "opcode", ["add.f32", "add.f64", "add.noftz.f16", "add.noftz.bf16", "add.noftz.f16x2", "add.noftz.bf16x2"]
)
def test_float_add(opcode: str) -> None:
    """One lane per cell: sums of more lanes depend on their order."""
    kind = opcode.split(".")[-1]
    f = FORMATS[kind.removesuffix("x2")]
    half_mask = (1 << f.width) - 1
    shifts = range(0, bits_of(kind), f.width)
    atomic = Atomic(f"atom.global.{opcode} {{d}}, [%w0], {{a}};", kind)

    def test(inputs: list[Lanes]) -> None:
        values, memory = inputs[0], np.roll(inputs[0], 3)
        old, after = atomic(values, np.arange(len(values), dtype=np.uint32), memory)
        assert old.tolist() == memory.tolist()
        for a, b, result in zip(memory.tolist(), values.tolist(), after.tolist()):
            for at in shifts:
                x, y, got = (v >> at & half_mask for v in (a, b, result))
                expected = {soft.add(x, y, f)}
                # The ISA has atom.add.f32 on global memory flush subnormals.
                if kind == "f32":
                    expected.add(soft.flush(soft.add(soft.flush(x, f), soft.flush(y, f), f), f))
                bad = soft.is_nan(next(iter(expected)), f) and soft.is_nan(got, f)
                assert bad or got in expected, f"{opcode}: {x:#x} + {y:#x} = {got:#x}"

    check_examples((kind, "u32"), test)


def test_all_lanes_count() -> None:
    atomic = Atomic("atom.global.add.u32 {d}, [%w0], {a};", "u32")
    values = np.ones(1024, unsigned("u32"))
    old, after = atomic(values, np.zeros(1024, np.uint32), np.zeros(CELLS, np.uint32))
    assert after.tolist() == [1024, 0, 0, 0]
    assert sorted(old.tolist()) == list(range(1024))
