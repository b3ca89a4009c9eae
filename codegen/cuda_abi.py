"""spec/cuda/abi.json -> native/gen/cuda_abi.h: types, values and prototypes of the driver interface, valid C11 and C++."""

from __future__ import annotations

from typing import Any

from codegen.records import Abi, Parameter, load_abi

HEAD = """\
// The binary interface of the CUDA driver library: types, values and prototypes of every exported symbol, under its true name.
// No name is redirected by a macro: write cuMemAlloc_v2; cuMemAlloc is the 32-bit function of CUDA 2.
// With WEFT_ABI_TYPES_ONLY defined the prototypes are left out (the shim has functions of the same names in a namespace, and
// argument-dependent look-up would find both).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUDAAPI

#ifdef __cplusplus
#define WEFT_ABI_ASSERT(condition) static_assert(condition, #condition)
#define WEFT_ABI_ALIGNAS(bytes) alignas(bytes)
extern "C" {
#else
#define WEFT_ABI_ALIGNAS(bytes) _Alignas(bytes)
#define WEFT_ABI_ASSERT(condition) _Static_assert(condition, #condition)
#endif

"""
TAIL = """
#ifdef __cplusplus
}
#endif
"""


def build() -> str:
    return render(load_abi())


def render(abi: Abi) -> str:
    macros = "".join(f"#define {name} {value}\n" for name, value in abi.macros.items())
    types = "\n".join(type_text(record) for record in abi.types)
    prototypes = "".join(f"{prototype(name, parameters)};\n" for name, parameters in abi.symbols.items())
    push = "#ifndef WEFT_ABI_TYPES_ONLY\n#pragma GCC visibility push(default)\n"
    pop = "#pragma GCC visibility pop\n#endif  // WEFT_ABI_TYPES_ONLY\n"
    return f"{HEAD}{macros}\n{types}\n{push}{prototypes}{pop}{TAIL}"


def prototype(symbol: str, parameters: tuple[Parameter, ...], prefix: str = "") -> str:
    listed = ", ".join(p.declaration for p in parameters) or "void"
    return f"CUresult {prefix}{symbol}({listed})"


def type_text(record: dict[str, Any]) -> str:
    if "declare" in record:
        return f"{record['declare']};\n"
    kind = next(k for k in ("enum", "struct", "union") if k in record)
    tag, alias = record[kind], record["alias"]
    head = f"typedef {kind}" if alias else kind
    opening = f"{head} {tag} {{" if tag else f"{head} {{"
    body = enum_lines(record["values"]) if kind == "enum" else member_lines(record["members"], "    ")
    text = "\n".join([opening, *body, f"}} {alias};" if alias else "};"]) + "\n"
    return text + layout_asserts(record, alias or f"{kind} {tag}")


def enum_lines(values: list[Any]) -> list[str]:
    return [f"    {name} = {number_text(value)}," for name, value in values]


def number_text(value: int) -> str:
    return str(value) if value < 2**31 else f"{value:#x}"


def member_lines(members: list[Any], indent: str) -> list[str]:
    lines = []
    for member in members:
        if isinstance(member, str):
            lines.append(f"{indent}{member.replace('_Alignas', 'WEFT_ABI_ALIGNAS')};")
        else:
            tag = f" {member['tag']}" if member["tag"] else ""
            name = f" {member['name']}" if member["name"] else ""
            lines.append(f"{indent}{member['kind']}{tag} {{")
            lines += member_lines(member["members"], indent + "    ")
            lines.append(f"{indent}}}{name};")
    return lines


def layout_asserts(record: dict[str, Any], name: str) -> str:
    if "size_bytes" not in record:
        return ""
    lines = [f"WEFT_ABI_ASSERT(sizeof({name}) == {record['size_bytes']});"]
    lines += [f"WEFT_ABI_ASSERT(offsetof({name}, {m}) == {o});" for m, o in record.get("offsets", {}).items()]
    return "\n".join(lines) + "\n"
