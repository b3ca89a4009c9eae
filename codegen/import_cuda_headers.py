"""Reads NVIDIA's public headers and writes spec/cuda/abi.json: names, versions, parameter types, enum values, layouts.

A maintainers' tool, run once per new CUDA release: it needs pycparser, `cpp`, `cc` and the unpacked header wheels. Building Weft
needs neither it nor the headers. It stores facts of the binary interface only, no text. Design note: docs/design/codegen.md.

    python -m codegen.import_cuda_headers --headers .../cu13/include --older .../cuda_runtime/include
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pycparser import CParser, c_ast, c_generator  # type: ignore[import-untyped, import-not-found, unused-ignore]

FAKE_STANDARD_HEADER = """\
#ifndef WEFT_FAKE_STANDARD_HEADER
#define WEFT_FAKE_STANDARD_HEADER
typedef unsigned long size_t; typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef int int32_t;
typedef unsigned int uint32_t; typedef unsigned long uint64_t; typedef long int64_t;
#endif
"""
STANDARD_TYPES = frozenset({"size_t", "uint8_t", "uint16_t", "uint32_t", "int32_t", "uint64_t", "int64_t"})
# With the first, the header declares every exported symbol of every version; the second leaves enum ends out.
DEFINES = ("-D__CUDA_API_VERSION_INTERNAL", "-D__CUDA_API_VERSION_INTERNAL_ODR", "-D__attribute__(x)=")
TYPEDEF_HEADERS = (
    "cudaTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
    "cudaProfilerTypedefs.h",
)
PFN = re.compile(r"\bPFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)")
SUFFIX = re.compile(r"^(cu\w+?)(?:_v(\d+))?(_ptds|_ptsz)?$")
PROFILER = re.compile(r"\*PFN_(cuProfiler\w+)_v\d+\)\((.*)\);")
MACRO = re.compile(r"^#define ((?:CU|CUDA)_\w+) +(.+?) *$", re.MULTILINE)

# Names whose variants do not follow "n-th version is the n-th suffix": base -> variants (version, symbol). From the release
# notes and the names themselves: WithFlags took over the plain name in 12.0.
IRREGULAR: dict[str, list[tuple[int, str]]] = {
    "cuGraphInstantiate": [
        (10000, "cuGraphInstantiate"),
        (11000, "cuGraphInstantiate_v2"),
        (12000, "cuGraphInstantiateWithFlags"),
    ],
}


@dataclass
class Header:
    """One release of cuda.h, parsed."""

    folder: Path
    version: int
    types: list[dict[str, Any]] = field(default_factory=list)
    symbols: dict[str, list[list[str]]] = field(default_factory=dict)
    macros: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", type=Path, required=True, help="include folder of the newest CUDA release")
    parser.add_argument("--older", type=Path, required=True, help="include folder of an older release, as a cross-check")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "spec/cuda/abi.json")
    arguments = parser.parse_args()
    newest, older = read_header(arguments.headers), read_header(arguments.older)
    variants = read_variants(arguments.headers, newest.symbols)
    missing = sorted(set(older.symbols) - set(newest.symbols))
    for symbol in missing:
        newest.symbols[symbol] = older.symbols[symbol]
    check_against_older(newest, older)
    measure(newest)
    add_profiler(newest)
    record = {
        "about": "Facts of the CUDA driver's binary interface; written by codegen/import_cuda_headers.py, never by hand.",
        "cuda_version": newest.version,
        "sources": {"newest": hashes(newest), "older": hashes(older)},
        "only_in_older": missing,
        "names": complete_variants(variants, newest.symbols),
        "symbols": dict(sorted(newest.symbols.items())),
        "macros": newest.macros,
        "types": newest.types,
    }
    arguments.out.write_text(dump(record))


def dump(record: dict[str, Any]) -> str:
    """JSON with one line per entry of the big tables, so that a new release gives a readable difference."""
    parts = []
    for key, value in record.items():
        if isinstance(value, dict) and key != "sources":
            lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
            parts.append(f" {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n }")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            parts.append(f" {json.dumps(key)}: [\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def add_profiler(header: Header) -> None:
    """The three calls of cudaProfiler.h, which the runtime's wheel leaves out; its function types are there."""
    header.types.append({"enum": None, "alias": "CUoutput_mode", "values": [["CU_OUT_KEY_VALUE_PAIR", 0], ["CU_OUT_CSV", 1]]})
    for name, parameters in PROFILER.findall((header.folder / "cudaProfilerTypedefs.h").read_text()):
        listed = [] if parameters == "void" else [p.strip() for p in parameters.split(",")]
        header.symbols[name] = [[p, re.split(r"\W+", p)[-1]] for p in listed]


def hashes(header: Header) -> dict[str, Any]:
    names = [name for name in ("cuda.h", *TYPEDEF_HEADERS) if (header.folder / name).exists()]
    return {
        "cuda_version": header.version,
        "sha256": {name: hashlib.sha256((header.folder / name).read_bytes()).hexdigest() for name in names},
    }


def preprocess(folder: Path, *extra: str) -> str:
    with tempfile.TemporaryDirectory() as fake:
        for name in ("stdlib.h", "stdint.h", "stddef.h"):
            (Path(fake) / name).write_text(FAKE_STANDARD_HEADER)
        command = ["cpp", "-nostdinc", f"-I{fake}", f"-I{folder}", *DEFINES, *extra, str(folder / "cuda.h")]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_header(folder: Path) -> Header:
    tree = CParser().parse(preprocess(folder, "-P"))
    macros = dict(MACRO.findall(preprocess(folder, "-dM")))
    header = Header(folder, version=int(macros["CUDA_VERSION"]), macros=keep_macros(macros))
    for node in tree.ext:
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            header.symbols[node.name] = parameters_of(node.type)
        elif not (isinstance(node, c_ast.Typedef) and node.name in STANDARD_TYPES):
            header.types.append(type_record(node))
    return header


def keep_macros(macros: dict[str, str]) -> dict[str, str]:
    """Plain values, casts of values and second names of enumerators."""
    plain = re.compile(r"^[\w() *+<|x-]+$")
    return {k: v for k, v in sorted(macros.items()) if plain.match(v) and "__CUDA_API" not in v and not k.endswith("_H")}


def text_of(node: c_ast.Node) -> str:
    text: str = c_generator.CGenerator().visit(node)
    return re.sub(r"\s+", " ", text).strip()


def parameters_of(function: c_ast.FuncDecl) -> list[list[str]]:
    """[declaration, name] per parameter; `void` means none."""
    if function.args is None or text_of(function.args) == "void":
        return []
    return [[text_of(parameter), parameter.name] for parameter in function.args.params]


def type_record(node: c_ast.Node) -> dict[str, Any]:
    """One top-level type declaration: struct, union, enum, alias (also of handles and callbacks)."""
    inner = node.type.type if isinstance(node, c_ast.Typedef) and isinstance(node.type, c_ast.TypeDecl) else None
    name = node.name
    if inner is None and isinstance(node, c_ast.Decl):
        inner, name = node.type, None
    if isinstance(inner, c_ast.Enum) and inner.values:
        return {"enum": inner.name, "alias": name, "values": [e.name for e in inner.values.enumerators]}
    if isinstance(inner, c_ast.Struct | c_ast.Union) and inner.decls:
        kind = "struct" if isinstance(inner, c_ast.Struct) else "union"
        return {kind: inner.name, "alias": name, "members": members_of(inner)}
    return {"declare": text_of(node)}


def members_of(record: c_ast.Struct | c_ast.Union) -> list[Any]:
    """Member declarations as text; a nested anonymous struct or union as {kind, name, members}."""
    out: list[Any] = []
    for member in record.decls:
        inner = member.type.type if isinstance(member.type, c_ast.TypeDecl) else member.type
        if isinstance(inner, c_ast.Struct | c_ast.Union) and inner.decls:
            kind = "struct" if isinstance(inner, c_ast.Struct) else "union"
            out.append({"kind": kind, "tag": inner.name, "name": member.name, "members": members_of(inner)})
        else:
            out.append(text_of(member))
    return out


def read_variants(folder: Path, symbols: dict[str, list[list[str]]]) -> dict[str, list[dict[str, Any]]]:
    """base name -> [{since, symbol, per_thread}], from the names of the function pointer types."""
    found: dict[str, dict[str, set[int]]] = {}
    suffixes: dict[str, str] = {}
    for name in TYPEDEF_HEADERS:
        for base, version, suffix in PFN.findall((folder / name).read_text()):
            kind = "per_thread" if suffix else "plain"
            found.setdefault(base, {}).setdefault(kind, set()).add(int(version))
            if suffix:
                suffixes[base] = suffix
    return {base: variants_of(base, kinds, symbols, suffixes) for base, kinds in sorted(found.items())}


def foreign_names(base: str, kinds: dict[str, set[int]], suffix: str) -> list[str]:
    """Symbols of a name whose header is not read (GL, EGL, VDPAU): numbered by version; per-thread is the newest one's."""
    plain = [base if n == 0 else f"{base}_v{n + 1}" for n in range(len(kinds["plain"]))]
    return [plain[-1] + suffix] if suffix else plain


def variants_of(
    base: str, kinds: dict[str, set[int]], symbols: dict[str, list[list[str]]], suffixes: dict[str, str]
) -> list[dict[str, Any]]:
    if base in IRREGULAR:
        return [{"since": since, "symbol": symbol, "per_thread": False} for since, symbol in IRREGULAR[base]]
    out = []
    for kind, versions in sorted(kinds.items()):
        per_thread = kind == "per_thread"
        names = candidates(base, symbols, per_thread) or foreign_names(base, kinds, suffixes[base] if per_thread else "")
        # A per-thread variant of an old signature may exist without a type of its own, so count from the newest.
        if len(versions) > len(names):
            raise SystemExit(f"{base}: versions {sorted(versions)} but symbols {names}; add it to IRREGULAR")
        for since, symbol in zip(sorted(versions), names[-len(versions) :], strict=True):
            out.append({"since": since, "symbol": symbol, "per_thread": per_thread})
    return out


def candidates(base: str, symbols: dict[str, list[list[str]]], per_thread: bool) -> list[str]:
    """The symbols of a base name, oldest suffix first."""
    found = []
    for symbol in symbols:
        match = SUFFIX.match(symbol)
        if match and match[1] == base and bool(match[3]) == per_thread:
            found.append((int(match[2] or 1), symbol))
    return [symbol for _, symbol in sorted(found)]


def complete_variants(variants: dict[str, list[dict[str, Any]]], symbols: dict[str, Any]) -> dict[str, Any]:
    """Reports symbols that no version leads to: they are exported, but cuGetProcAddress does not hand them out."""
    reached = {variant["symbol"] for entries in variants.values() for variant in entries}
    unreached = sorted(set(symbols) - reached)
    print(f"{len(variants)} names, {len(symbols)} symbols; without a version: {' '.join(unreached)}")
    return variants


def check_against_older(newest: Header, older: Header) -> None:
    """A symbol never changes its parameters between releases (names of typedefs aside); say where the text differs."""
    for symbol, parameters in older.symbols.items():
        now = [re.sub(r"_v\d\b", "", declaration) for declaration, _ in newest.symbols[symbol]]
        before = [re.sub(r"_v\d\b", "", declaration) for declaration, _ in parameters]
        if [re.sub(r"\w+$", "", x) for x in now] != [re.sub(r"\w+$", "", x) for x in before]:
            print(f"differs from {older.version}: {symbol}: {before} -> {now}")


def measure(header: Header) -> None:
    """Fills in enum values, sizes and offsets by asking the C compiler about the real header."""
    lines = []
    for index, record in enumerate(header.types):
        lines += [f'printf("{index} value {v} %lld\\n", (long long){v});' for v in record.get("values", [])]
        kind = "struct" if "struct" in record else "union" if "union" in record else None
        if kind is None:
            continue
        name = record["alias"] or f"{kind} {record[kind]}"
        lines.append(f'printf("{index} size - %zu\\n", sizeof({name}));')
        members = member_names(record["members"])
        lines += [f'printf("{index} offset {m} %zu\\n", offsetof({name}, {m}));' for m in members]
    program = "#include <stddef.h>\n#include <stdio.h>\n#include <cuda.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n"
    for line in run_program(program, header.folder).splitlines():
        number, what, name, value = line.split(" ")
        record = header.types[int(number)]
        if what == "size":
            record["size_bytes"] = int(value)
        elif what == "offset":
            record.setdefault("offsets", {})[name] = int(value)
        else:
            record["values"][record["values"].index(name)] = [name, int(value)]


def member_names(members: list[Any]) -> list[str]:
    names: list[str] = []
    for member in members:
        if isinstance(member, dict):
            names += [member["name"]] if member["name"] else member_names(member["members"])
        else:
            match = re.search(r"\(\*(?:const )?(\w+)\)\(", member) or re.search(r"(\w+)(?: *\[.*\])?$", member)
            assert match, member
            assert ":" not in member, member
            names.append(match[1])
    return names


def run_program(source: str, folder: Path) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "measure.c"
        path.write_text(source)
        subprocess.run(["cc", "-w", *DEFINES[:2], f"-I{folder}", "-o", f"{scratch}/measure", str(path)], check=True)
        return subprocess.run([f"{scratch}/measure"], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
