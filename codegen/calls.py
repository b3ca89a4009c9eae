"""The records of spec/cuda/calls.toml joined with the headers' facts: what each supported call is and which frame it sends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from codegen.records import CALLS_PATH, Abi, Parameter, SpecError, load_abi, read_toml
from codegen.wire_frames import Frame, layout

CLASSES = ("local", "async", "wait", "custom")
KEYS = {
    "class", "priority", "doc", "symbols", "before_init", "errors", "frames", "args",
    "opcode", "driver", "stream", "check", "skip",
}  # fmt: skip
KINDS = re.compile(r"(out\??|in\??|text|opaque|launch_config)$|(in|out|device)\[(.+)\]$")
# C types that travel in a field of their own: type -> field type.
SCALARS = {
    "unsigned int": "u32", "int": "i32", "size_t": "u64", "unsigned char": "u32", "unsigned short": "u32", "float": "f32",
    "unsigned long long": "u64", "cuuint64_t": "u64", "cuuint32_t": "u32", "CUdeviceptr": "u64", "CUdevice": "i32",
}  # fmt: skip
LAUNCH_CONFIG_FIELDS = (
    ("grid_x", "gridDimX"), ("grid_y", "gridDimY"), ("grid_z", "gridDimZ"),
    ("block_x", "blockDimX"), ("block_y", "blockDimY"), ("block_z", "blockDimZ"),
    ("shared_bytes", "sharedMemBytes"), ("attribute_count", "numAttrs"),
)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """A parameter with what the spec says of it. length: a C expression of bytes, for device memory and host buffers."""

    parameter: Parameter
    kind: str  # value, handle, device, out, out?, in, in?, text, opaque, launch_config
    length: str | None = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def must_not_be_null(self) -> bool:
        return self.kind in ("out", "in", "text", "launch_config") and self.length is None

    @property
    def pointee(self) -> str:
        return self.parameter.type.removesuffix("*").strip()


@dataclass(frozen=True)
class Served:
    """An exported symbol and how it reaches its implementation."""

    symbol: str
    per_thread: bool


@dataclass(frozen=True)
class Implementation:
    """One symbol that has code of its own, with the symbols that it serves (itself first)."""

    symbol: str
    arguments: tuple[Argument, ...]
    served: tuple[Served, ...]


@dataclass(frozen=True)
class Call:
    name: str
    klass: str
    priority: str
    doc: str
    before_init: bool
    errors: str
    frames: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    # Without a stream parameter, but its per-thread variants use another default stream.
    has_default_stream: bool
    opcode: int | None
    driver: str | None
    stream: str | None
    check: tuple[str, ...]
    skip: str | None

    @property
    def is_generated(self) -> bool:
        return self.klass in ("async", "wait")

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Of a call with a frame, which has one implementation."""
        return self.implementations[0].arguments

    def argument(self, kind: str) -> Argument | None:
        return next((a for a in self.arguments if a.kind == kind), None)

    @property
    def stream_argument(self) -> Argument | None:
        return next((a for a in self.arguments if a.parameter.type == "CUstream"), None)

    @property
    def is_stream_ordered(self) -> bool:
        return self.stream_argument is not None or self.stream == "default"


@cache
def load_calls() -> tuple[Call, ...]:
    return parse_calls(load_abi(), read_toml(CALLS_PATH)["call"])


def parse_calls(abi: Abi, records: dict[str, dict[str, Any]]) -> tuple[Call, ...]:
    calls = tuple(parse_call(abi, name, record) for name, record in records.items())
    exported = [served.symbol for call in calls for i in call.implementations for served in i.served]
    if twice := sorted({s for s in exported if exported.count(s) > 1}):
        raise SpecError(f"{CALLS_PATH}: served by two calls: {', '.join(twice)}")
    return calls


def parse_call(abi: Abi, name: str, record: dict[str, Any]) -> Call:
    check_record(abi, name, record)
    used: set[str] = set()
    symbols = record.get("symbols") or [newest_symbol(abi, name)]
    implementations = tuple(implementation(abi, name, symbol, symbols, record, used) for symbol in symbols)
    if unused := set(record.get("args", {})) - used:
        raise SpecError(f"{CALLS_PATH}: {name}: no such parameter: {', '.join(sorted(unused))}")
    per_thread = [s.symbol for i in implementations for s in i.served if s.per_thread]
    return Call(
        name=name,
        klass=record["class"],
        priority=record["priority"],
        doc=record.get("doc", ""),
        before_init=record.get("before_init", False),
        errors=record.get("errors", "deferred" if record["class"] == "async" else "returned"),
        frames=tuple(record.get("frames", ())),
        implementations=implementations,
        has_default_stream=any(symbol.endswith("_ptds") for symbol in per_thread),
        opcode=record.get("opcode"),
        driver=record.get("driver", symbols[0]) if "opcode" in record else None,
        stream=record.get("stream"),
        check=tuple(record.get("check", ())),
        skip=record.get("skip"),
    )


def check_record(abi: Abi, name: str, record: dict[str, Any]) -> None:
    def refuse(why: str) -> None:
        raise SpecError(f"{CALLS_PATH}: {name}: {why}")

    if name not in abi.names:
        refuse("no such driver call")
    if unknown := set(record) - KEYS:
        refuse(f"unknown keys {sorted(unknown)}")
    if record.get("class") not in CLASSES or not re.fullmatch(r"P[0-3]", record.get("priority", "")):
        refuse("class or priority is missing or unknown")
    generated = record["class"] in ("async", "wait")
    if generated and ("opcode" not in record or "symbols" in record or "frames" in record):
        refuse("an async or wait call needs an opcode, and has neither symbols nor frames")
    if "opcode" in record and (record["class"] == "local" or not 256 <= record["opcode"] < 4096):
        refuse("opcodes are for async, wait and custom calls, from 256 to 4095")
    if "opcode" not in record and set(record) & {"driver", "stream", "check", "skip"}:
        refuse("driver, stream, check and skip need an opcode")
    if record.get("stream", "default") != "default" or record.get("errors", "returned") not in ("returned", "deferred"):
        refuse("bad stream or errors")


def newest_symbol(abi: Abi, name: str) -> str:
    plain = [v for v in abi.names[name] if not v.per_thread]
    return max(plain, key=lambda v: v.since).symbol


def symbols_of(abi: Abi, name: str) -> Iterator[str]:
    for variant in abi.names[name]:
        if variant.symbol in abi.symbols:
            yield variant.symbol


def types_of(abi: Abi, symbol: str) -> list[str]:
    return [p.type.replace("CUdevice_v1", "CUdevice") for p in abi.symbols[symbol]]


def implementation(abi: Abi, name: str, symbol: str, own: list[str], record: dict[str, Any], used: set[str]) -> Implementation:
    if symbol not in abi.symbols:
        raise SpecError(f"{CALLS_PATH}: {name}: unknown symbol {symbol}")
    plain = [symbol]
    for other in symbols_of(abi, name):
        is_variant = not other.endswith(("_ptds", "_ptsz")) and other not in own
        if is_variant and types_of(abi, other) == types_of(abi, symbol):
            plain.append(other)
    served = [Served(s, False) for s in plain]
    served += [Served(s + suffix, True) for s in plain for suffix in ("_ptds", "_ptsz") if s + suffix in abi.symbols]
    annotations = record.get("args", {})
    used |= {p.name for p in abi.symbols[symbol]} & set(annotations)
    arguments = tuple(argument(abi, name, p, annotations.get(p.name)) for p in abi.symbols[symbol])
    return Implementation(symbol, arguments, tuple(served))


def argument(abi: Abi, call: str, parameter: Parameter, annotation: str | None) -> Argument:
    if annotation is None:
        if "*" in parameter.declaration:
            raise SpecError(f"{CALLS_PATH}: {call}: say in args what the pointer {parameter.name} is")
        return Argument(parameter, "handle" if parameter.type in handle_types(abi) else "value")
    match = KINDS.match(annotation)
    if match is None:
        raise SpecError(f"{CALLS_PATH}: {call}.{parameter.name}: unknown kind {annotation}")
    return Argument(parameter, match[1]) if match[1] else Argument(parameter, match[2], match[3])


@cache
def handle_types(abi: Abi) -> frozenset[str]:
    """Typedefs of pointers to structs that are never defined."""
    found = [re.match(r"typedef struct \w+_st \*(\w+)$", record.get("declare", "")) for record in abi.types]
    return frozenset(match[1] for match in found if match)


@cache
def enum_types(abi: Abi) -> frozenset[str]:
    names = {record["alias"] for record in abi.types if "enum" in record and record["alias"]}
    renames = [re.match(r"typedef (\w+) (\w+)$", record.get("declare", "")) for record in abi.types]
    return frozenset(names | {match[2] for match in renames if match and match[1] in names})


# -------------------------------------------------------------------------------------------------------------- frames


@dataclass(frozen=True)
class FieldSource:
    """A field of a call's frame and the C++ expression that the client fills it with."""

    name: str
    type: str
    value: str


def wire_type(abi: Abi, call: str, c_type: str) -> str:
    plain = c_type.removeprefix("const ").strip()
    if plain in SCALARS:
        return SCALARS[plain]
    if plain in enum_types(abi):
        return "i32"
    raise SpecError(f"{CALLS_PATH}: {call}: a parameter of type {c_type} has no place in a frame")


def field_sources(abi: Abi, call: Call) -> list[FieldSource]:
    """The fields of the call's frame, wide ones first so that no padding is needed between them."""
    found: list[FieldSource] = []
    if call.is_stream_ordered:
        found.append(FieldSource("stream", "u32", ""))  # filled in by submit
    for a in call.arguments:
        found += argument_fields(abi, call.name, a)
    ordered = [f for f in found if f.type == "u64"] + [f for f in found if f.type != "u64"]
    if len([f for f in found if f.type != "u64"]) % 2 or not found:
        width = "u32" if found else "u64"
        ordered.append(FieldSource("reserved", width, ""))
    return ordered


def argument_fields(abi: Abi, call: str, a: Argument) -> list[FieldSource]:
    kind = a.parameter.type
    is_buffer = a.length is not None and a.kind != "device"
    if kind == "CUstream" or (a.kind in ("out", "out?") and not is_buffer):
        return []
    if kind == "CUfunction":
        return [
            FieldSource("module", "u32", f"{a.name}_found->module->number"),
            FieldSource("function", "u32", f"{a.name}_found->index"),
        ]
    if kind == "CUevent":
        return [FieldSource(a.name, "u32", f"{a.name}_found->number")]
    if a.kind == "launch_config":
        return [FieldSource(name, "u32", f"{a.name}->{member}") for name, member in LAUNCH_CONFIG_FIELDS]
    if a.kind in ("value", "device"):
        field = wire_type(abi, call, kind)
        value = f"static_cast<std::int32_t>({a.name})" if kind in enum_types(abi) else a.name
        return [FieldSource(a.name, field, value)]
    raise SpecError(f"{CALLS_PATH}: {call}.{a.name}: {a.kind} cannot be generated; make the call custom")


def call_frames() -> list[Frame]:
    abi = load_abi()
    return sorted((frame_of(abi, call) for call in load_calls() if call.opcode is not None), key=lambda frame: frame.opcode)


def frame_of(abi: Abi, call: Call) -> Frame:
    assert call.opcode is not None
    fields = {f.name: f.type for f in field_sources(abi, call)}
    return Frame(
        name=call.name,
        opcode=call.opcode,
        direction="c2e",
        doc=f"The call {call.name}: class {call.klass}.",
        fields=layout(call.name, fields),
        waiting=call.klass == "wait",
        stream="stream" if call.is_stream_ordered else None,
        tail="attributes" if any(a.kind == "launch_config" for a in call.arguments) else None,
    )
