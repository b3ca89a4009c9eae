"""spec/cuda/abi.json -> native/gen/cuda_names.{h,cpp}: every known driver name with its versions, for cuGetProcAddress, and
the names and descriptions of CUresult."""

from __future__ import annotations

from codegen.records import ERRORS_PATH, Abi, SpecError, load_abi, read_toml

HEADER = """\
// Every known driver name, and which exported symbol answers for it from which CUDA version on. Tables only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gen/cuda_abi.h"

namespace weft::driver {{

inline constexpr std::size_t kNameCount = {names};
inline constexpr std::size_t kVariantCount = {variants};
inline constexpr std::size_t kSymbolCount = {symbols};

// One variant of a name: `symbol` (an index into kSymbolNames) answers from CUDA version `since` on; per_thread: the variant for
// programs compiled with per-thread default streams.
struct NameVariant {{
    std::uint32_t since;
    std::uint16_t symbol;
    bool per_thread;
}};

// A base name with its variants kVariants[first .. first + count), by rising version.
struct NameEntry {{
    const char* name;
    std::uint16_t first;
    std::uint16_t count;
}};

extern const NameEntry kNames[kNameCount];         // sorted by name
extern const NameVariant kVariants[kVariantCount];
extern const char* const kSymbolNames[kSymbolCount];  // sorted

// What cuGetErrorName and cuGetErrorString answer; nullptr for a value that is no CUresult.
const char* error_name(CUresult result);
const char* error_description(CUresult result);
// Errors after which the context answers nothing else (spec/cuda/errors.toml).
bool is_sticky(CUresult result);

}}  // namespace weft::driver
"""


def build_header() -> str:
    abi = load_abi()
    variants = sum(len(entries) for entries in abi.names.values())
    return HEADER.format(names=len(abi.names), variants=variants, symbols=len(abi.all_symbols()))


def build_source() -> str:
    abi, errors = load_abi(), read_toml(ERRORS_PATH)
    return render_source(abi, errors["description"], errors["sticky"])


def render_source(abi: Abi, descriptions: dict[str, str], sticky: list[str]) -> str:
    symbols = abi.all_symbols()
    index = {symbol: i for i, symbol in enumerate(symbols)}
    entries: list[str] = []
    variants: list[str] = []
    for name, listed in sorted(abi.names.items()):
        entries.append(f'    {{"{name}", {len(variants)}, {len(listed)}}},')
        ordered = sorted(listed, key=lambda v: (v.since, v.per_thread))
        variants += [f"    {{{v.since}, {index[v.symbol]}, {str(v.per_thread).lower()}}},  // {v.symbol}" for v in ordered]
    return "\n".join(
        [
            '#include "gen/cuda_names.h"\n\nnamespace weft::driver {\n',
            "const NameEntry kNames[kNameCount] = {",
            *entries,
            "};\n\nconst NameVariant kVariants[kVariantCount] = {",
            *variants,
            "};\n\nconst char* const kSymbolNames[kSymbolCount] = {",
            *(f'    "{symbol}",' for symbol in symbols),
            "};\n",
            error_switches(abi, descriptions, sticky),
            "}  // namespace weft::driver\n",
        ]
    )


def error_switches(abi: Abi, descriptions: dict[str, str], sticky: list[str]) -> str:
    results = [name for name, _ in abi.enum("CUresult")]
    if unknown := sorted((set(descriptions) | set(sticky)) - set(results)):
        raise SpecError(f"{ERRORS_PATH}: not a CUresult: {', '.join(unknown)}")
    if missing := [name for name in results if name not in descriptions]:
        raise SpecError(f"{ERRORS_PATH}: no description of {', '.join(missing)}")
    names = [f'        case {name}:\n            return "{name}";' for name in results]
    texts = [f'        case {name}:\n            return "{descriptions[name]}";' for name in results]
    lines = ["const char* error_name(CUresult result) {", "    switch (result) {", *names, "    }", "    return nullptr;", "}\n"]
    lines += ["const char* error_description(CUresult result) {", "    switch (result) {", *texts, "    }"]
    lines += ["    return nullptr;", "}\n", "bool is_sticky(CUresult result) {", "    switch (result) {"]
    lines += [*(f"        case {name}:" for name in sticky), "            return true;", "        default:"]
    lines += ["            return false;", "    }", "}\n"]
    return "\n".join(lines)
