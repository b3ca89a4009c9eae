"""Runs one opcode of the software GPU over arrays and compares every lane with a model.

A case becomes a PTX module once; examples only copy, launch and copy back. Design note: docs/design/software-gpu.md.
"""

import ctypes
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.swgpu.soft import BF16, F16, F32, F64, FORMATS, Format, is_nan
from weft.base.native import SOFTWARE_GPU, native_file

Lanes = npt.NDArray[Any]
Model = Callable[..., int | bool | None]
LANES = 64
MOST_LANES = 1024
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def bits_of(kind: str) -> int:
    """Width in bits of a PTX type as it lies in memory; predicates are words of 0 or 1."""
    if kind == "pred":
        return 32
    width = int(kind.removesuffix("x2").lstrip("abcdefghijklmnopqrstuvwxyz"))
    return width * 2 if kind.endswith("x2") else width


@dataclass(frozen=True)
class Case:
    """One opcode. The model takes one lane's operands and gives the result, or None where the ISA leaves it open.

    Operands are integers: signed for s types, bit patterns for floats, True or False for predicates. `body` replaces the
    plain "opcode d, a, b, c;" ({d}, {a}, {b}, {c}, {e} are registers).
    """

    opcode: str
    operands: tuple[str, ...]
    result: str
    model: Model = field(compare=False)
    body: str = ""
    any_nan: bool = False
    close: Callable[[int, int], bool] | None = field(default=None, compare=False)
    label: str = ""

    def __str__(self) -> str:
        return self.opcode + (f"-{self.label}" if self.label else "")


class Device:
    """The software GPU's driver interface in this process."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(str(native_file(SOFTWARE_GPU)))
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self._call("cuCtxCreate_v2", ctypes.byref(context), 0, device)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} gave CUresult {code}")

    def compile(self, ptx: str, entry: str = "k") -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(2048)
        options, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode(), 2, options, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode()}\n{ptx}") from None
        self._call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def allocate(self, size: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def write(self, address: ctypes.c_uint64, data: Lanes) -> None:
        self._call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))

    def read(self, address: ctypes.c_uint64, data: Lanes) -> None:
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), address, ctypes.c_size_t(data.nbytes))

    def launch(self, function: ctypes.c_void_p, blocks: int, threads: int, arguments: Sequence[ctypes.c_uint64]) -> None:
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(argument) for argument in arguments))
        self._call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)
        self._call("cuCtxSynchronize")


@cache
def device() -> Device:
    return Device()


@cache
def buffer(index: int) -> ctypes.c_uint64:
    return device().allocate(MOST_LANES * 16)


def register_of(kind: str) -> str:
    return ".pred" if kind == "pred" else f".b{max(bits_of(kind), 32 if bits_of(kind) == 8 else 16)}"


def kernel_text(operands: Sequence[str], result: str, body: str) -> str:
    """A kernel that applies `body` to element i of each operand; i is the global thread index."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(len(operands) + 1))
    lines = [
        f"{HEADER}.visible .entry k({parameters}) {{",
        ".reg .b32 %i, %n, %t<8>; .reg .b64 %base, %w<8>; .reg .b16 %h<8>; .reg .pred %q<8>;",
        f".reg {register_of(result)} %d;",
        "mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t0, %tid.x; mad.lo.u32 %i, %i, %n, %t0;",
    ]
    for i, kind in enumerate(operands):
        width = bits_of(kind)
        load = f"{kind[0]}8" if width == 8 else f"b{width}"
        lines.append(f".reg {register_of(kind)} %x{i};")
        lines.append(f"ld.param.u64 %base, [p{i + 1}]; mad.wide.u32 %base, %i, {width // 8}, %base;")
        if kind == "pred":
            lines.append(f"ld.global.b32 %t1, [%base]; setp.ne.u32 %x{i}, %t1, 0;")
        else:
            lines.append(f"ld.global.{load} %x{i}, [%base];")
    names = dict(zip("abce", (f"%x{i}" for i in range(len(operands)))))
    lines.append(body.format(d="%d", **names))
    lines.append(f"ld.param.u64 %base, [p0]; mad.wide.u32 %base, %i, {bits_of(result) // 8}, %base;")
    if result == "pred":
        lines.append("selp.u32 %t1, 1, 0, %d; st.global.b32 [%base], %t1;")
    else:
        lines.append(f"st.global.b{bits_of(result)} [%base], %d;")
    return "\n".join([*lines, "ret;", "}"])


@cache
def kernel(operands: tuple[str, ...], result: str, body: str) -> ctypes.c_void_p:
    return device().compile(kernel_text(operands, result, body))


def unsigned(kind: str) -> np.dtype[Any]:
    return np.dtype(f"u{bits_of(kind) // 8}")


def run(case: Case, inputs: Sequence[Lanes]) -> Lanes:
    """The opcode's results as unsigned integers. The arrays' length is a multiple of 32."""
    plain = ", ".join(["{d}", *("{" + name + "}" for name in "abce"[: len(case.operands)])])
    function = kernel(case.operands, case.result, case.body or f"{case.opcode} {plain};")
    output = np.zeros(len(inputs[0]), unsigned(case.result))
    for i, values in enumerate(inputs):
        device().write(buffer(i + 1), values)
    device().launch(function, len(output) // 32, 32, [buffer(i) for i in range(len(inputs) + 1)])
    device().read(buffer(0), output)
    return output


def as_operand(values: Lanes, kind: str) -> list[Any]:
    if kind == "pred":
        return [bool(value) for value in values]
    if kind[0] == "s":
        values = values.view(f"i{values.itemsize}")
    return list(values.tolist())


def verify(case: Case, inputs: Sequence[Lanes]) -> None:
    actual = run(case, inputs).tolist()
    lanes = zip(*(as_operand(values, kind) for values, kind in zip(inputs, case.operands)))
    mask = (1 << bits_of(case.result)) - 1
    wrong = []
    for lane, (operands, result) in enumerate(zip(lanes, actual)):
        expected = case.model(*operands)
        if expected is not None and not agrees(case, int(expected) & mask, result):
            shown = ", ".join(hex(value) if isinstance(value, int) else str(value) for value in operands)
            wrong.append(f"lane {lane}: ({shown}) gave {result:#x}, expected {int(expected) & mask:#x}")
    assert not wrong, f"{case.opcode}: {len(wrong)} of {len(actual)} lanes are wrong\n" + "\n".join(wrong[:8])


def agrees(case: Case, expected: int, actual: int) -> bool:
    if expected == actual:
        return True
    if case.close is not None:
        return case.close(expected, actual)
    if case.any_nan or case.result == "f64":
        one = case.result.removesuffix("x2")
        form = FORMATS[one]
        parts = [
            (expected >> at & (1 << form.width) - 1, actual >> at & (1 << form.width) - 1)
            for at in range(0, bits_of(case.result), form.width)
        ]
        return all(x == y or (is_nan(x, form) and is_nan(y, form)) for x, y in parts)
    return False


# ---- operands ----


def float_specials(f: Format) -> list[int]:
    hidden = f.precision - 1
    one, least, top = f.emax << hidden, 1 << hidden, f.infinity
    half_ulp = ((f.emax - f.precision) % (2 * f.emax)) << hidden
    positive = [
        0,
        1,
        2,
        least // 2,
        least - 1,
        least,
        least + 1,
        one - 1,
        one,
        one + 1,
        one - least,
        one + least,
        one | least >> 1,
        one | 3 * (least >> 2),
        half_ulp,
        half_ulp + 1,
        (f.emax + f.precision - 1) << hidden,
        ((f.emax + f.precision) << hidden) + 1,
        top - 1,
        top,
        top + 1,
        top | least >> 1,
        top | least - 1,
    ]
    for power in (8, 15, 31, 63):
        if power <= f.emax:
            positive += [((f.emax + power) << hidden) - 1, (f.emax + power) << hidden, ((f.emax + power + 1) << hidden) - 1]
    return [*positive, *(value | f.sign for value in positive)]


@cache
def specials(kind: str) -> tuple[int, ...]:
    if kind == "pred":
        return (0, 1)
    if kind.endswith("x2"):
        one = specials(kind[:-2])
        return tuple(one[i] | one[(i * 7 + 3) % len(one)] << 16 for i in range(len(one)))
    if kind in FORMATS:
        return tuple(float_specials(FORMATS[kind]))
    width = bits_of(kind)
    edges = [
        0,
        1,
        2,
        3,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        0x7F,
        0x80,
        0xFF,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
    ]
    mask = (1 << width) - 1
    return tuple(sorted({*(edge & mask for edge in edges), *(-edge & mask for edge in edges[:12]), mask >> 1, (mask >> 1) + 1}))


def decode(kind: str, words: npt.NDArray[np.uint64], choice: npt.NDArray[np.uint8]) -> Lanes:
    """Lanes from raw bits: special values, some close to them, some with few bits or exponents, the rest as they are."""
    table = np.array(specials(kind), np.uint64)
    special = table[words % np.uint64(len(table))]
    result = np.where(choice < 80, special, words)
    near = special + (words >> np.uint64(32)) % np.uint64(5) - np.uint64(2)
    result = np.where((choice >= 80) & (choice < 112), near, result)
    result = np.where((choice >= 112) & (choice < 176), few(kind, words), result)
    if kind == "pred":
        result &= np.uint64(1)
    return result.astype(unsigned(kind))


def few(kind: str, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Small integers; floats whose exponents lie close together, so that sums cancel and round."""
    if kind not in FORMATS:
        return words % np.uint64(70)
    f = FORMATS[kind]
    mantissa = words % np.uint64(1 << (f.precision - 1))
    exponent = (words >> np.uint64(58)) % np.uint64(32) % np.uint64(f.emax) + np.uint64(f.emax - min(16, f.emax // 2))
    sign = (words >> np.uint64(57) & np.uint64(1)) * np.uint64(f.sign)
    result: npt.NDArray[np.uint64] = sign | exponent << np.uint64(f.precision - 1) | mantissa
    return result


def from_bytes(operands: Sequence[str], blob: bytes) -> list[Lanes]:
    size = len(blob) // len(operands)
    arrays = []
    for i, kind in enumerate(operands):
        part = blob[i * size : (i + 1) * size]
        lanes = size // 9
        arrays.append(decode(kind, np.frombuffer(part, np.uint64, lanes), np.frombuffer(part, np.uint8, lanes, lanes * 8)))
    return arrays


def combinations(operands: Sequence[str]) -> list[Lanes]:
    """Special values against each other: all of them where they fit, else a fixed choice."""
    tables = [specials(kind) for kind in operands]
    if np.prod([len(table) for table in tables]) <= MOST_LANES:
        rows = list(itertools.product(*tables))
    else:
        draw = random.Random(1)
        rows = [tuple(draw.choice(table) for table in tables) for _ in range(MOST_LANES)]
    rows += rows[:1] * (-len(rows) % 32)
    return [np.array(column, unsigned(kind)) for column, kind in zip(zip(*rows), operands)]


def check(case: Case, examples: int = 15) -> None:
    """Special values, then examples chosen by hypothesis."""
    verify(case, combinations(case.operands))
    check_examples(case.operands, lambda inputs: verify(case, inputs), examples)


def check_examples(operands: Sequence[str], test: Callable[[list[Lanes]], None], examples: int = 25, lanes: int = LANES) -> None:
    size = lanes * 9 * len(operands)

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(min_size=size, max_size=size))
    def body(blob: bytes) -> None:
        test(from_bytes(operands, blob))

    body()


def number(bits: int, f: Format) -> float:
    """A bit pattern as a Python float."""
    dtype = {F16: np.float16, F32: np.float32, F64: np.float64}
    if f is BF16:
        return number(bits << 16, F32)
    return float(np.array([bits], f"u{f.width // 8}").view(dtype[f])[0])


def pairs(model: Callable[..., int]) -> Callable[..., int]:
    """A model of 16 bits for both halves of 32."""

    def both(*operands: int) -> int:
        return model(*(x & 0xFFFF for x in operands)) | model(*(x >> 16 & 0xFFFF for x in operands)) << 16

    return both
