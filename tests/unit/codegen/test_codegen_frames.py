"""Frames: layout rules, the append-only list of opcodes, and the generated text."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.opcodes import extend_lock, lock_text
from codegen.records import SpecError
from codegen.wire_frames import Frame, check_unique, frame_struct, layout, parse_frame


def frame(name: str, opcode: int, **more: Any) -> Frame:
    fields = {"address": "u64", "stream": "u32", "flags": "u32"}
    return parse_frame({"name": name, "opcode": opcode, "direction": "c2e", "doc": "A frame.", "fields": fields, **more})


def test_struct_of_a_frame() -> None:
    assert frame_struct(frame("COPY_IT", 65, stream="stream", tail="bytes", waiting="optional")) == (
        "// A frame.\n"
        "struct CopyIt {\n"
        "    static constexpr std::uint16_t kOpcode = 65;\n"
        '    static constexpr std::string_view kName = "COPY_IT";\n'
        '    static constexpr FrameInfo kInfo = {"COPY_IT", Direction::client_to_executor, '
        "Has::optional, Has::never, true, 16, 32};\n"
        "    std::uint64_t address;\n"
        "    std::uint32_t stream;\n"
        "    std::uint32_t flags;\n"
        "};\n"
        "static_assert(sizeof(CopyIt) == 16 && alignof(CopyIt) <= kFrameAlignment);\n"
        "static_assert(offsetof(CopyIt, stream) == 8);\n"
        "static_assert(offsetof(CopyIt, flags) == 12);\n"
    )


def test_fields_lie_at_their_natural_alignment_or_are_refused() -> None:
    assert [f.offset for f in layout("X", {"a": "bytes[32]", "b": "u64", "c": "u16", "d": "u16", "e": "f32"})] == [
        0,
        32,
        40,
        42,
        44,
    ]
    with pytest.raises(SpecError, match=r"X\.b lies at 4"):
        layout("X", {"a": "u32", "b": "u64"})
    with pytest.raises(SpecError, match="not a multiple of 8"):
        layout("X", {"a": "u32"})
    with pytest.raises(SpecError, match="unknown field type"):
        layout("X", {"a": "u24"})


def test_names_and_opcodes_are_unique() -> None:
    with pytest.raises(SpecError, match="opcode used twice"):
        check_unique([frame("A", 1), frame("B", 1)])
    with pytest.raises(SpecError, match="name used twice"):
        check_unique([frame("A", 1), frame("A", 2)])


def test_a_stream_must_be_a_field_and_keys_must_be_known() -> None:
    with pytest.raises(SpecError, match="stream names no field"):
        frame("A", 1, stream="strom")
    with pytest.raises(SpecError, match="unknown keys"):
        frame("A", 1, urgent=True)


def test_opcodes_are_append_only() -> None:
    locked = extend_lock({}, [frame("A", 1), frame("B", 2)])
    assert extend_lock(locked, [frame("A", 1), frame("B", 2), frame("C", 3)]) == {1: "A", 2: "B", 3: "C"}
    with pytest.raises(SpecError, match="has opcode 1 for ever"):
        extend_lock(locked, [frame("A", 4)])
    with pytest.raises(SpecError, match="opcode 2 of C belongs to B"):
        extend_lock(locked, [frame("C", 2)])


def test_a_removed_frame_keeps_its_number() -> None:
    locked = extend_lock({1: "A", 2: "B"}, [frame("A", 1)])
    assert "2 B\n" in lock_text(locked)
