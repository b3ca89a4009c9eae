"""Reads headers and libraries of the CUDA runtime and writes spec/cuda/runtime_abi.json: what two majors declare and export.

A maintainers' tool like import_cuda_headers, run once per release: it needs pycparser, `cpp`, `cc`, `readelf` and the
unpacked wheels. It stores facts of the binary interface only: names, versions, parameter types, values, layouts.
Design note: docs/design/cudart.md.

    python -m codegen.import_runtime_headers --major 12 INCLUDE CRT LIBCUDART --major 13 INCLUDE CRT LIBCUDART

CRT is the folder that holds the `crt` folder; it comes with the compiler's wheel.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pycparser import CParser, c_ast  # type: ignore[import-untyped, import-not-found, unused-ignore]

from codegen.import_cuda_headers import FAKE_STANDARD_HEADER, STANDARD_TYPES, member_names, parameters_of, text_of, type_record

FAKE_HEADERS = ("stdlib.h", "stdint.h", "stddef.h", "limits.h")
# With this the header declares every exported symbol of every version and names the per-thread variants apart.
DEFINES = ("-D__CUDA_API_VERSION_INTERNAL", "-DINT_MAX=2147483647", "-DUINT_MAX=4294967295U")
# Types of device code and of cuda.h, which cuda_abi.h has; short vectors are unused by the runtime's calls.
VECTOR = re.compile(r"^(struct )?(u?(char|short|int|long|longlong)|float|double)[1-4](_\w+)?$")
KEPT_VECTORS = {"uint3", "dim3"}
DRIVER_TYPES = {"CUuuid_st", "CUuuid"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--major", nargs=4, action="append", required=True, metavar=("N", "INCLUDE", "CRT", "LIBRARY"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "spec/cuda/runtime_abi.json")
    arguments = parser.parse_args()
    majors = {number: read_major((Path(include), Path(crt)), Path(library)) for number, include, crt, library in arguments.major}
    about = "Facts of the CUDA runtime's binary interface; written by codegen/import_runtime_headers.py, never by hand."
    arguments.out.write_text(dump({"about": about, "majors": majors}))


def read_major(folders: tuple[Path, Path], library: Path) -> dict[str, Any]:
    tree = CParser().parse(preprocess(folders, "-P"))
    version = int(re.search(r"CUDART_VERSION +(\d+)", preprocess(folders, "-dM"))[1])  # type: ignore[index]
    types: list[dict[str, Any]] = []
    functions: dict[str, list[list[str]]] = {}
    for node in tree.ext:
        if isinstance(node, c_ast.FuncDef | c_ast.Pragma):
            continue
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            if node.name.startswith("cuda"):
                functions[node.name] = parameters_of(node.type)
            continue
        record = type_record(node)
        name = record.get("alias") or record.get("struct") or record.get("union") or getattr(node, "name", None) or ""
        foreign = (VECTOR.match(name) and name not in KEPT_VECTORS) or name in STANDARD_TYPES | DRIVER_TYPES
        if not foreign and "__storage" not in json.dumps(record):
            types.append(record)
    measure(types, folders)
    returns = {name: result_type(tree, name) for name in functions}
    listed = {name: {"returns": returns[name], "parameters": parameters} for name, parameters in sorted(functions.items())}
    return {"version": version, "types": types, "functions": listed, "exports": exports(library)}


def result_type(tree: c_ast.FileAST, name: str) -> str:
    for node in tree.ext:
        if isinstance(node, c_ast.Decl) and node.name == name:
            text = re.sub(r"^extern ", "", text_of(node.type.type))
            return re.sub(rf" ?\*?\b{name}\b", "*" if f"*{name}" in text else "", text).strip()
    raise SystemExit(f"no declaration of {name}")


def preprocess(folders: tuple[Path, Path], *extra: str) -> str:
    with tempfile.TemporaryDirectory() as fake:
        for name in FAKE_HEADERS:
            (Path(fake) / name).write_text(FAKE_STANDARD_HEADER)
        includes = [f"-I{fake}", *(f"-I{folder}" for folder in folders)]
        source = str(folders[0] / "cuda_runtime_api.h")
        # The compiler's own attributes go; -undef of __GNUC__ would lose the host's definitions.
        command = ["cpp", "-nostdinc", *includes, *DEFINES, "-D__attribute__(x)=", "-D__inline__=inline", *extra, source]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(types: list[dict[str, Any]], folders: tuple[Path, Path]) -> None:
    """Enum values, sizes and offsets, asked of the C compiler about the real header."""
    lines = []
    for index, record in enumerate(types):
        lines += [f'printf("{index} value {v} %lld\\n", (long long){v});' for v in record.get("values", [])]
        kind = "struct" if "struct" in record else "union" if "union" in record else None
        if kind is None:
            continue
        name = record["alias"] or f"{kind} {record[kind]}"
        lines.append(f'printf("{index} size - %zu\\n", sizeof({name}));')
        lines += [f'printf("{index} offset {m} %zu\\n", offsetof({name}, {m}));' for m in member_names(record["members"])]
    head = "#include <stddef.h>\n#include <stdio.h>\n#include <cuda_runtime_api.h>\n"
    for line in run(head + "int main(void) {\n" + "\n".join(lines) + "\n}\n", folders).splitlines():
        number, what, name, value = line.split(" ")
        record = types[int(number)]
        if what == "size":
            record["size_bytes"] = int(value)
        elif what == "offset":
            record.setdefault("offsets", {})[name] = int(value)
        else:
            record["values"][record["values"].index(name)] = [name, int(value)]


def run(source: str, folders: tuple[Path, Path]) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "measure.c"
        path.write_text(source)
        includes = [f"-I{folder}" for folder in folders]
        subprocess.run(["cc", "-w", *includes, "-o", f"{scratch}/measure", str(path)], check=True)
        return subprocess.run([f"{scratch}/measure"], check=True, capture_output=True, text=True).stdout


def exports(library: Path) -> dict[str, str]:
    """Exported name -> symbol version."""
    table = subprocess.run(["readelf", "-W", "--dyn-syms", str(library)], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[6] != "UND" and "@@" in fields[7]:
            name, version = fields[7].split("@@")
            found[name] = version
    return dict(sorted(found.items()))


def dump(record: dict[str, Any]) -> str:
    """JSON with one line per entry, so that a new release gives a readable difference."""
    majors = []
    for number, major in record["majors"].items():
        types = ",\n".join(f"    {json.dumps(item)}" for item in major["types"])
        functions = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in major["functions"].items())
        names = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in major["exports"].items())
        majors.append(
            f'  "{number}": {{\n   "version": {major["version"]},\n   "types": [\n{types}\n   ],\n'
            f'   "functions": {{\n{functions}\n   }},\n   "exports": {{\n{names}\n   }}\n  }}'
        )
    return f'{{\n "about": {json.dumps(record["about"])},\n "majors": {{\n' + ",\n".join(majors) + "\n }\n}\n"


if __name__ == "__main__":
    main()
