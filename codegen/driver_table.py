"""spec/cuda/calls.toml -> native/gen/driver_table.{h,cpp}: the functions of the real driver that the executor calls."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.calls import load_calls
from codegen.records import CALLS_PATH, Abi, SpecError, load_abi, read_toml

HEADER_HEAD = """\
// The functions of a driver library that the executor calls, as pointers. Loading: native/driver/load.h.
#pragma once

#include <cstddef>

#include "gen/cuda_abi.h"

namespace weft::driver {

// Optional exports of a driver made by Weft (see docs/design/call-path.md).
// Tells where an allocation inside mapped memory begins (is_alloc 1) or ends (is_alloc 0, size_bytes not read).
using WeftMemoryNote = CUresult (*)(CUdeviceptr address, std::size_t size_bytes, int is_alloc);
// Where the CPU may read and write this range of device memory directly; nullptr: nowhere.
using WeftHostAccess = void* (*)(CUdeviceptr address, std::size_t size_bytes);

struct DriverTable {
"""
HEADER_TAIL = """\
    WeftMemoryNote weftMemoryNote = nullptr;
    WeftHostAccess weftHostAccess = nullptr;
    void* library = nullptr;  // of dlopen; never closed: a driver leaves threads behind
};

struct DriverSymbol {
    const char* name;
    std::size_t offset;  // of the pointer in DriverTable
    bool required;
};

extern const DriverSymbol kDriverSymbols[];
extern const std::size_t kDriverSymbolCount;

}  // namespace weft::driver
"""


@dataclass(frozen=True)
class Wanted:
    symbol: str
    required: bool


def wanted_symbols() -> list[Wanted]:
    table = read_toml(CALLS_PATH)["driver_table"]
    wanted = [Wanted(s, True) for s in table["required"]] + [Wanted(s, False) for s in table["optional"]]
    named = {w.symbol for w in wanted}
    wanted += [Wanted(s, False) for s in sorted({call.driver for call in load_calls() if call.driver} - named)]
    names = [w.symbol for w in wanted]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise SpecError(f"{CALLS_PATH}: driver_table names twice: {', '.join(twice)}")
    return wanted


def build_header() -> str:
    return render_header(load_abi(), wanted_symbols())


def render_header(abi: Abi, wanted: list[Wanted]) -> str:
    if unknown := [w.symbol for w in wanted if w.symbol not in abi.symbols]:
        raise SpecError(f"{CALLS_PATH}: driver_table names unknown symbols: {', '.join(unknown)}")
    fields = [f"    decltype(&::{w.symbol}) {w.symbol} = nullptr;{'' if w.required else '  // may be null'}\n" for w in wanted]
    return HEADER_HEAD + "".join(fields) + HEADER_TAIL


def build_source() -> str:
    lines = [f'    {{"{w.symbol}", offsetof(DriverTable, {w.symbol}), {str(w.required).lower()}}},' for w in wanted_symbols()]
    return "\n".join(
        [
            '#include "gen/driver_table.h"\n\nnamespace weft::driver {\n',
            "const DriverSymbol kDriverSymbols[] = {",
            *lines,
            "};",
            f"const std::size_t kDriverSymbolCount = {len(lines)};\n\n}}  // namespace weft::driver\n",
        ]
    )
