"""The fixed records of spec/wire/frames.toml -> native/gen/wire_records.h and src/weft/gen/preamble.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from codegen.records import FRAMES_PATH, SpecError, read_toml
from codegen.wire_frames import Field, layout, member, wrap

PYTHON_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "f32": "f"}


@dataclass(frozen=True)
class Record:
    name: str
    size_bytes: int
    doc: str
    fields: tuple[Field, ...]


def load_records() -> list[Record]:
    records = [
        Record(r["name"], r["size_bytes"], r["doc"], layout(r["name"], r["fields"])) for r in read_toml(FRAMES_PATH)["record"]
    ]
    for record in records:
        if sum(field.size for field in record.fields) != record.size_bytes:
            raise SpecError(f"{FRAMES_PATH}: record {record.name} is not {record.size_bytes} bytes long")
    return records


def build_cpp() -> str:
    return render_cpp(load_records(), read_toml(FRAMES_PATH)["protocol"]["magic"])


def render_cpp(records: list[Record], magic: list[int]) -> str:
    parts = [
        "// The fixed records that open a connection. What they mean: wire/preamble.h and docs/design/wire.md.\n#pragma once\n",
        "#include <array>\n#include <cstddef>\n#include <cstdint>\n\nnamespace weft::wire {\n",
        "// The first bytes of both records.",
        f"inline constexpr std::array<std::uint8_t, {len(magic)}> kPreambleMagic = {{{', '.join(map(hex, magic))}}};\n",
    ]
    for record in records:
        lines = [f"// {line}" for line in wrap(record.doc)] + [f"struct {record.name} {{"]
        lines += [f"    {member(field)[:-1]}{{}};" for field in record.fields] + ["};"]
        lines += [f"static_assert(sizeof({record.name}) == {record.size_bytes});"]
        lines += [f"static_assert(offsetof({record.name}, {f.name}) == {f.offset});" for f in record.fields if f.offset]
        parts.append("\n".join(lines) + "\n")
    parts.append("}  // namespace weft::wire\n")
    return "\n".join(parts)


def build_python() -> str:
    return render_python(load_records(), read_toml(FRAMES_PATH)["protocol"])


def render_python(records: list[Record], protocol: dict[str, Any]) -> str:
    parts = [
        '"""The fixed records that open a connection, as the server reads and writes them. See docs/design/wire.md."""\n',
        "from __future__ import annotations\n\nimport struct\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n",
        f"PREAMBLE_MAGIC = bytes({protocol['magic']})",
        f"PROTOCOL_VERSION = {protocol['version']}",
        f"PROTOCOL_OLDEST = {protocol['oldest']}\n\n",
    ]
    return "\n".join(parts) + "\n\n".join(python_class(record) for record in records)


def python_class(record: Record) -> str:
    fields = [field for field in record.fields if field.name != "reserved"]
    codes = "<" + "".join(python_code(field) for field in record.fields)
    annotations = [f"    {f.name}: {'bytes' if f.type.startswith('bytes') else 'int'}" for f in fields]
    values = ", ".join(f"self.{f.name}" for f in fields)
    names = ", ".join(f.name for f in fields)
    lines = ["@dataclass(frozen=True)", f"class {record.name}:", f'    """{record.doc}"""', ""]
    lines += [
        f'    LAYOUT: ClassVar[struct.Struct] = struct.Struct("{codes}")',
        f"    SIZE_BYTES: ClassVar[int] = {record.size_bytes}",
        "",
    ]
    lines += [
        *annotations,
        "",
        "    def encode(self) -> bytes:",
        f"        return self.LAYOUT.pack({values})",
        "",
        "    @classmethod",
    ]
    lines += [f"    def decode(cls, data: bytes) -> {record.name}:", '        """data is SIZE_BYTES long."""']
    lines += [f"        {names} = cls.LAYOUT.unpack(data)", f"        return cls({names})"]
    return "\n".join(lines) + "\n"


def python_code(field: Field) -> str:
    if match := re.fullmatch(r"bytes\[(\d+)\]", field.type):
        return f"{match[1]}{'x' if field.name == 'reserved' else 's'}"
    return f"{field.size}x" if field.name == "reserved" else PYTHON_CODES[field.type]
