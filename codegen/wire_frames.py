"""spec/wire/frames.toml and the generated calls -> native/gen/wire_frames.h."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from codegen.records import FRAMES_PATH, SpecError, read_toml

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "f32": 4}
C_TYPES = {
    "u8": "std::uint8_t",
    "u16": "std::uint16_t",
    "u32": "std::uint32_t",
    "u64": "std::uint64_t",
    "i32": "std::int32_t",
    "f32": "float",
}
HEADER_BYTES = 24
HAS = {False: "never", True: "always", "optional": "optional"}


@dataclass(frozen=True)
class Field:
    """A field of a frame: its offset is from the end of the header."""

    name: str
    type: str
    offset: int

    @property
    def size(self) -> int:
        return field_size(self.type)[0]


@dataclass(frozen=True)
class Frame:
    name: str
    opcode: int
    direction: str
    doc: str
    fields: tuple[Field, ...]
    waiting: bool | str = False
    payload: bool | str = False
    stream: str | None = None
    tail: str | None = None

    @property
    def struct(self) -> str:
        """COPY_H2D_INLINE -> CopyH2dInline; a call's frame cuMemsetD8 -> MemsetD8."""
        if self.name.isupper():
            return "".join(part.capitalize() for part in self.name.split("_"))
        return self.name.removeprefix("cu")

    @property
    def fixed_bytes(self) -> int:
        return sum(field.size for field in self.fields)

    @property
    def stream_offset(self) -> int:
        """From the start of the frame; -1 if no stream orders it."""
        return next((HEADER_BYTES + f.offset for f in self.fields if f.name == self.stream), -1)


def field_size(kind: str) -> tuple[int, int]:
    """(size, alignment) of a field type."""
    if match := re.fullmatch(r"bytes\[(\d+)\]", kind):
        return int(match[1]), 1
    if kind not in SIZES:
        raise SpecError(f"{FRAMES_PATH}: unknown field type {kind}")
    return SIZES[kind], SIZES[kind]


def layout(owner: str, fields: dict[str, str], multiple: int = 8) -> tuple[Field, ...]:
    """Fields at their natural alignment; padding must be written out as reserved fields."""
    placed, offset = [], 0
    for name, kind in fields.items():
        size, alignment = field_size(kind)
        if offset % alignment:
            raise SpecError(f"{owner}.{name} lies at {offset}, not a multiple of {alignment}: add a reserved field")
        placed.append(Field(name, kind, offset))
        offset += size
    if offset % multiple:
        raise SpecError(f"{owner} has {offset} bytes, not a multiple of {multiple}: add a reserved field")
    return tuple(placed)


def parse_frame(record: dict[str, Any]) -> Frame:
    known = {"name", "opcode", "direction", "doc", "fields", "waiting", "payload", "stream", "tail"}
    if unknown := set(record) - known:
        raise SpecError(f"{FRAMES_PATH}: {record.get('name')}: unknown keys {sorted(unknown)}")
    frame = Frame(**{**record, "fields": layout(record["name"], record["fields"])})
    if frame.direction not in ("c2e", "e2c") or frame.waiting not in HAS or frame.payload not in HAS:
        raise SpecError(f"{FRAMES_PATH}: {frame.name}: bad direction, waiting or payload")
    if frame.stream is not None and frame.stream_offset < 0:
        raise SpecError(f"{FRAMES_PATH}: {frame.name}: stream names no field")
    return frame


def load_frames() -> list[Frame]:
    """The hand-written frames, by opcode."""
    frames = [parse_frame(record) for record in read_toml(FRAMES_PATH)["frame"]]
    check_unique(frames)
    if high := [f.name for f in frames if not 1 <= f.opcode < 256]:
        raise SpecError(f"{FRAMES_PATH}: opcodes of {high} are not in 1..255")
    return sorted(frames, key=lambda frame: frame.opcode)


def check_unique(frames: list[Frame]) -> None:
    for what, values in (("name", [f.struct for f in frames]), ("opcode", [str(f.opcode) for f in frames])):
        if twice := {v for v in values if values.count(v) > 1}:
            raise SpecError(f"{FRAMES_PATH}: {what} used twice: {sorted(twice)}")


# ------------------------------------------------------------------------------------------------------------ C++ text


HEADER = """\
// The frames of the session protocol as structs, and what each opcode allows. Use with wire/codec.h.
// Grammar: docs/design/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/codec.h"

namespace weft::wire {{

inline constexpr std::uint32_t kProtocolVersion = {version};
inline constexpr std::uint32_t kProtocolOldest = {oldest};
"""


def render_header(frames: list[Frame], protocol: dict[str, int]) -> str:
    parts = [HEADER.format(version=protocol["version"], oldest=protocol["oldest"])]
    parts.append("enum class Opcode : std::uint16_t {")
    parts += [f"    {frame.struct} = {frame.opcode}," for frame in frames]
    parts.append("};\n")
    parts += [frame_struct(frame) for frame in frames]
    parts.append(info_table(frames))
    parts.append("}  // namespace weft::wire\n")
    return "\n".join(parts)


def frame_struct(frame: Frame) -> str:
    lines = [f"// {line}" for line in wrap(frame.doc)]
    lines += [f"struct {frame.struct} {{", f"    static constexpr std::uint16_t kOpcode = {frame.opcode};"]
    lines += [
        f'    static constexpr std::string_view kName = "{frame.name}";',
        f"    static constexpr FrameInfo kInfo = {info(frame)};",
    ]
    lines += [f"    {member(field)}" for field in frame.fields]
    lines += [
        "};",
        f"static_assert(sizeof({frame.struct}) == {frame.fixed_bytes} && alignof({frame.struct}) <= kFrameAlignment);",
    ]
    lines += [f"static_assert(offsetof({frame.struct}, {f.name}) == {f.offset});" for f in frame.fields if f.offset]
    return "\n".join(lines) + "\n"


def member(field: Field) -> str:
    if field.type.startswith("bytes"):
        return f"std::array<std::uint8_t, {field.size}> {field.name};"
    return f"{C_TYPES[field.type]} {field.name};"


def info(frame: Frame) -> str:
    direction = "client_to_executor" if frame.direction == "c2e" else "executor_to_client"
    return (
        f'{{"{frame.name}", Direction::{direction}, Has::{HAS[frame.waiting]}, Has::{HAS[frame.payload]}, '
        f"{str(frame.tail is not None).lower()}, {frame.fixed_bytes}, {frame.stream_offset}}}"
    )


def info_table(frames: list[Frame]) -> str:
    last = max(frame.opcode for frame in frames)
    fill = [f"    table[{frame.opcode}] = {frame.struct}::kInfo;" for frame in frames]
    return "\n".join(
        [
            f"inline constexpr std::uint16_t kLastOpcode = {last};",
            "",
            "// By opcode; entries without a name are no frames.",
            "inline constexpr std::array<FrameInfo, kLastOpcode + 1> kFrameInfos = [] {",
            "    std::array<FrameInfo, kLastOpcode + 1> table{};",
            *fill,
            "    return table;",
            "}();",
            "",
            "// The description of an opcode, or nullptr for an unknown one.",
            "inline const FrameInfo* find_frame_info(std::uint16_t opcode) {",
            "    return opcode <= kLastOpcode && !kFrameInfos[opcode].name.empty() ? &kFrameInfos[opcode] : nullptr;",
            "}",
            "",
        ]
    )


def wrap(text: str, width: int = 120) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines
