"""Loads and stores: widths, vectors, sub-word sizes with extension, state spaces."""

import numpy as np
import pytest

from tests.unit.swgpu.harness import Case, Lanes, bits_of, buffer, check, check_examples, device, kernel_text

SPACES = ("shared", "local")


def extended(value: int, kind: str, bits: int) -> int:
    n = bits_of(kind)
    value &= (1 << n) - 1
    return (value - (1 << n) if kind[0] == "s" and value >> (n - 1) else value) & (1 << bits) - 1


def word_cases(space: str) -> list[Case]:
    """A value goes through the state space and comes back in a register that may be wider."""
    cases = []
    slot = "%w1" if space == "local" else "%t3"
    for kind in ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64"):
        for register in (16, 32, 64):
            n = bits_of(kind)
            if n > register or (kind[0] == "f" and n != register):
                continue
            declare = f".{space} .align 16 .b8 room[1024];"
            where = (
                "mov.u64 %w1, room; mad.wide.u32 %w1, %t0, 16, %w1;"
                if space == "local"
                else "mov.u32 %t3, room; mad.lo.u32 %t3, %t0, 16, %t3;"
            )
            body = f"{{{{ {declare} {where} st.{space}.b{n} [{slot}], {{a}}; ld.{space}.{kind} {{d}}, [{slot}]; }}}}"
            cases.append(
                Case(
                    f"ld.{space}.{kind}",
                    (f"b{register}",),
                    f"b{register}",
                    lambda a, kind=kind, register=register: extended(a, kind, register),
                    body,
                    label=str(register),
                )
            )
    return cases


@pytest.mark.parametrize("case", [case for space in SPACES for case in word_cases(space)], ids=str)
def test_word(case: Case) -> None:
    check(case, examples=5)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("kind", ["u8", "s8", "b16", "u32", "f32", "b64", "f64"])
def test_vectors(kind: str, count: int) -> None:
    """Elements come back in reversed order, so that each is seen to be in its place."""
    n = bits_of(kind)
    if n * count > 128:
        return
    register = max(n, 16) if n != 8 else 16
    names = [f"%v{i}" for i in range(count)]
    vector, reverse = ", ".join(names), ", ".join(reversed(names))
    size = n * count // 8
    body = (
        f".reg .b{register} %v<{count}>; ld.param.u64 %w0, [p1]; mad.wide.u32 %w0, %i, {size}, %w0; "
        f"ld.global.v{count}.{kind} {{{{{vector}}}}}, [%w0]; ld.param.u64 %w1, [p2]; mad.wide.u32 %w1, %i, {size}, %w1; "
        f"st.global.v{count}.{'b8' if n == 8 else kind} [%w1], {{{{{reverse}}}}}; mov.b32 {{d}}, 0;"
    )
    function = device().compile(kernel_text(("b32", "b32"), "b32", body))

    def test(inputs: list[Lanes]) -> None:
        data = np.frombuffer(inputs[0].tobytes(), f"u{n // 8}")[: 32 * count].copy()
        device().write(buffer(1), data)
        device().launch(function, 1, 32, [buffer(i) for i in range(3)])
        result = np.zeros_like(data)
        device().read(buffer(2), result)
        assert result.reshape(32, count).tolist() == data.reshape(32, count)[:, ::-1].tolist()

    check_examples(("b64",), test, examples=8, lanes=128)


def test_generic_addresses_of_shared_and_local() -> None:
    for space in SPACES:
        body = (
            f"{{{{ .{space} .align 8 .b8 room[1024]; mov.u64 %w1, room; cvta.{space}.u64 %w1, %w1; "
            "mad.wide.u32 %w1, %t0, 8, %w1; st.b64 [%w1], {a}; ld.b64 {d}, [%w1]; }}"
        )
        check(Case(f"cvta.{space}.u64", ("b64",), "b64", lambda a: a, body), examples=5)


def test_lanes_see_each_other_through_shared_memory() -> None:
    body = (
        "{{ .shared .align 4 .b32 room[32]; mov.u32 %t3, room; mad.lo.u32 %t4, %t0, 4, %t3; st.shared.b32 [%t4], {a}; "
        "bar.sync 0; xor.b32 %t5, %t0, 31; mad.lo.u32 %t5, %t5, 4, %t3; ld.shared.b32 {d}, [%t5]; }}"
    )
    function = device().compile(kernel_text(("b32",), "b32", body))

    def test(inputs: list[Lanes]) -> None:
        device().write(buffer(1), inputs[0])
        device().launch(function, 1, 32, [buffer(0), buffer(1)])
        result = np.zeros_like(inputs[0])
        device().read(buffer(0), result)
        assert result.tolist() == inputs[0][::-1].tolist()

    check_examples(("b32",), test, lanes=32)
