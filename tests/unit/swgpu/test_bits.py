"""Logic, shifts, bit fields and selections."""

import pytest

from tests.unit.swgpu.harness import Case, bits_of, check

BITS = ("b16", "b32", "b64")


def logic(kind: str) -> list[Case]:
    return [
        Case(f"and.{kind}", (kind, kind), kind, lambda a, b: a & b),
        Case(f"or.{kind}", (kind, kind), kind, lambda a, b: a | b),
        Case(f"xor.{kind}", (kind, kind), kind, lambda a, b: a ^ b),
    ]


def shifts(n: int) -> list[Case]:
    u, s, b = f"u{n}", f"s{n}", f"b{n}"
    return [
        Case(f"shl.{b}", (b, "u32"), b, lambda a, by: a << by if by < n else 0),
        Case(f"shr.{u}", (u, "u32"), u, lambda a, by: a >> by if by < n else 0),
        Case(f"shr.{b}", (b, "u32"), b, lambda a, by: a >> by if by < n else 0),
        Case(f"shr.{s}", (s, "u32"), s, lambda a, by: a >> min(by, n - 1)),
    ]


def funnel(side: str, mode: str) -> Case:
    def model(a: int, b: int, by: int) -> int:
        by = min(by, 32) if mode == "clamp" else by & 31
        both = b << 32 | a
        return both << by >> 32 if side == "l" else both >> by

    return Case(f"shf.{side}.{mode}.b32", ("b32", "b32", "u32"), "b32", model)


def lop3(table: int) -> Case:
    def model(a: int, b: int, c: int) -> int:
        result = 0
        for i in range(8):
            if table >> i & 1:
                result |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        return result

    body = f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};"
    return Case("lop3.b32", ("b32", "b32", "b32"), "b32", model, body, label=hex(table))


def permute(mode: str) -> Case:
    def source(i: int, c: int) -> int:
        first = c & 3
        return {
            "f4e": first + i,
            "b4e": (first - i) % 8,
            "rc8": first,
            "ecl": max(i, first),
            "ecr": min(i, first),
            "rc16": (first & 1) * 2 + (i & 1),
        }[mode]

    def model(a: int, b: int, c: int) -> int:
        both, result = b << 32 | a, 0
        for i in range(4):
            if mode:
                byte = both >> 8 * source(i, c) & 0xFF
            else:
                select = c >> 4 * i & 0xF
                byte = both >> 8 * (select & 7) & 0xFF
                byte = (0xFF if byte & 0x80 else 0) if select & 8 else byte
            result |= byte << 8 * i
        return result

    name = "prmt.b32" + (f".{mode}" if mode else "")
    return Case(name, ("b32", "b32", "b32"), "b32", model)


def extract(kind: str) -> Case:
    top = bits_of(kind) - 1

    def model(a: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        sign = 0 if kind[0] == "u" or length == 0 else a >> min(position + length - 1, top) & 1
        kept = min(length, max(0, top + 1 - position))
        field = (a & (1 << top + 1) - 1) >> position & (1 << kept) - 1
        return field | (-1 << kept if sign else 0)

    return Case(f"bfe.{kind}", (kind, "u32", "u32"), kind, model)


def insert(kind: str) -> Case:
    n = bits_of(kind)

    def model(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        mask = ((1 << length) - 1 << position) & (1 << n) - 1
        return b & ~mask | a << position & mask

    return Case(f"bfi.{kind}", (kind, kind, "u32", "u32"), kind, model)


def find(kind: str, shift: bool) -> Case:
    n = bits_of(kind)

    def model(a: int) -> int:
        position = (~a if a < 0 else a).bit_length() - 1
        return n - 1 - position if shift and position >= 0 else position

    return Case(f"bfind{'.shiftamt' if shift else ''}.{kind}", (kind,), "u32", model)


def counts(kind: str) -> list[Case]:
    n = bits_of(kind)
    return [
        Case(f"popc.{kind}", (kind,), "u32", lambda a: a.bit_count()),
        Case(f"clz.{kind}", (kind,), "u32", lambda a: n - a.bit_length()),
        Case(f"brev.{kind}", (kind,), kind, lambda a: int(f"{a:0{n}b}"[::-1], 2)),
    ]


def nth_set(mask: int, base: int, offset: int) -> int | None:
    if base > 31:
        return None
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in places if mask >> i & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else -1


def extend(kind: str, mode: str) -> Case:
    def model(a: int, b: int) -> int:
        if mode == "clamp" and b >= 32:
            return a
        width = b & 31
        kept = a & (1 << width) - 1
        return kept | (-1 << width if kind == "s32" and width and kept >> width - 1 else 0)

    return Case(f"szext.{mode}.{kind}", (kind, "u32"), kind, model)


def mask_of(mode: str) -> Case:
    def model(a: int, b: int) -> int:
        if mode == "clamp" and a >= 32:
            return 0
        a, length = a & 31, (min(b, 32) if mode == "clamp" else b & 31)
        return (1 << length) - 1 << a

    return Case(f"bmsk.{mode}.b32", ("u32", "u32"), "b32", model)


CASES = [
    *(case for kind in (*BITS, "pred") for case in logic(kind)),
    *(Case(f"not.{kind}", (kind,), kind, lambda a: ~a) for kind in BITS),
    Case("not.pred", ("pred",), "pred", lambda a: not a),
    *(Case(f"cnot.{kind}", (kind,), kind, lambda a: a == 0) for kind in BITS),
    *(case for n in (16, 32, 64) for case in shifts(n)),
    *(funnel(side, mode) for side in "lr" for mode in ("clamp", "wrap")),
    *(lop3(table) for table in (0x00, 0x01, 0x1E, 0x3C, 0x6A, 0x80, 0x96, 0xCA, 0xD8, 0xE8, 0xF8, 0xFE, 0xFF)),
    *(permute(mode) for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    *(extract(kind) for kind in ("u32", "s32", "u64", "s64")),
    insert("b32"),
    insert("b64"),
    *(find(kind, shift) for kind in ("u32", "s32", "u64", "s64") for shift in (False, True)),
    *counts("b32"),
    *counts("b64"),
    Case("fns.b32", ("b32", "u32", "s32"), "b32", nth_set),
    *(extend(kind, mode) for kind in ("u32", "s32") for mode in ("clamp", "wrap")),
    mask_of("clamp"),
    mask_of("wrap"),
    *(
        Case(f"selp.{kind}", (kind, kind, "pred"), kind, lambda a, b, p: a if p else b)
        for kind in (*BITS, "f32", "f64", "s16", "u64")
    ),
    *(Case(f"slct.{kind}.s32", (kind, kind, "s32"), kind, lambda a, b, c: a if c >= 0 else b) for kind in (*BITS, "f32", "f64")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opcode(case: Case) -> None:
    check(case)


def test_mov_packs_and_unpacks() -> None:
    body = "{{ .reg .b16 l, h; mov.b32 {{l, h}}, {a}; mov.b32 {d}, {{h, l}}; }}"
    check(Case("mov.b32", ("b32",), "b32", lambda a: a >> 16 | (a & 0xFFFF) << 16, body))
    body = "mov.b64 {{%t2, %t3}}, {a}; mov.b64 {d}, {{%t3, %t2}};"
    check(Case("mov.b64", ("b64",), "b64", lambda a: a >> 32 | (a & 0xFFFFFFFF) << 32, body))
