"""spec/cuda/runtime*.{json,toml} -> native/gen/cudart_{entries,api,exports}_N: the exported side of Weft's runtime.

Every exported name is defined: by a forward to the driver, around a function written by hand, or as a stub.
See docs/design/cudart.md.
"""

from __future__ import annotations

from codegen.records import SpecError, load_abi
from codegen.runtime_records import VARIANT, Major, RuntimeCall, Treatment, error_texts, load_major, load_treatments

ENTRIES = """\
// The exported calls of libcudart.so.{number}. A call that fails is remembered as the thread's last error by finish().
#include "cudart/entry.h"
#include "gen/cudart_api_{number}.h"

using weft::cudart::enter;
using weft::cudart::enter_driver;
using weft::cudart::finish;
using weft::cudart::pass;
using weft::cudart::thread_stream;
using weft::cudart::unsupported;
namespace api = weft::cudart::api;

"""
API = """\
// Functions of libcudart.so.{number} that are written by hand.
#pragma once

#include "gen/cudart_types_{number}.h"

namespace weft::cudart::api {{

"""
DRIVER = """\
// The driver's calls by name, for the table that native/cudart/driver.cpp fills.
#pragma once

"""


def build_entries_12() -> str:
    return render_entries(load_major("12"))


def build_entries_13() -> str:
    return render_entries(load_major("13"))


def build_api_12() -> str:
    return render_api(load_major("12"))


def build_api_13() -> str:
    return render_api(load_major("13"))


def build_exports_12() -> str:
    return render_exports(load_major("12"))


def build_exports_13() -> str:
    return render_exports(load_major("13"))


def build_driver_calls() -> str:
    """Every driver symbol with known parameters. Calls with a stream need no per-thread variant: the stream is passed."""
    names = [name for name in load_abi().symbols if not name.endswith("_ptsz")]
    rows = " \\\n".join(f"    X({name})" for name in names)
    return f"{DRIVER}#define WEFT_DRIVER_CALLS(X) \\\n{rows}\n"


def render_exports(major: Major) -> str:
    """One node per symbol version, as the original has them."""
    versions = sorted(set(major.exports.values()))
    nodes = []
    for version in versions:
        names = "".join(f"    {name};\n" for name, its in major.exports.items() if its == version)
        local = "  local:\n    *;\n" if version == versions[-1] else ""
        nodes.append(f"{version} {{\n  global:\n{names}{local}}};\n")
    return "".join(nodes)


def render_api(major: Major) -> str:
    lines = []
    for name, treatment in sorted(load_treatments(major.number).items()):
        if treatment.kind in ("hand", "plain"):
            call = major.calls[name]
            lines.append(f"{call.returns} {name}({', '.join(api_parameters(major, call))});")
    return API.format(number=major.number) + "\n".join(lines) + "\n\n}  // namespace weft::cudart::api\n"


def api_parameters(major: Major, call: RuntimeCall) -> list[str]:
    listed = [p.declaration for p in call.parameters]
    return [*listed, "CUstream default_stream"] if needs_default(major, call) else listed


def needs_default(major: Major, call: RuntimeCall) -> bool:
    return major.has_variant(call.name) and not call.streams


def render_entries(major: Major) -> str:
    treatments = load_treatments(major.number)
    text = ENTRIES.format(number=major.number) + 'extern "C" {\n#pragma GCC visibility push(default)\n\n'
    for name in major.exports:
        base = VARIANT.sub("", name)
        treatment = treatments.get(name) or treatments.get(base) or Treatment("stub")
        if treatment.kind != "bare":
            text += entry(major, name, base, treatment) + "\n"
    text += '\n#pragma GCC visibility pop\n}  // extern "C"\n\n' + error_table(major)
    return text


def entry(major: Major, name: str, base: str, treatment: Treatment) -> str:
    if treatment.kind == "stub":
        return f'cudaError_t {name}() {{ return finish(unsupported("{name}")); }}'
    call = major.calls[base]
    listed = ", ".join(p.declaration for p in call.parameters)
    serve = forward if treatment.kind in ("forward", "question") else by_hand
    body = serve(major, name, call, treatment)
    return f"{call.returns} {name}({listed}) {{ {body} }}"


def argument(name: str, call: RuntimeCall, parameter: str) -> str:
    return f"thread_stream({parameter})" if VARIANT.search(name) and parameter in call.streams else parameter


def by_hand(major: Major, name: str, call: RuntimeCall, treatment: Treatment) -> str:
    arguments = [argument(name, call, p.name) for p in call.parameters]
    if needs_default(major, call):
        arguments.append("CU_STREAM_PER_THREAD" if VARIANT.search(name) else "nullptr")
    called = f"api::{call.name}({', '.join(arguments)})"
    return f"return {called};" if treatment.kind == "plain" else f"return finish({called});"


def forward(major: Major, name: str, call: RuntimeCall, treatment: Treatment) -> str:
    symbols = load_abi().symbols
    if treatment.driver not in symbols:
        raise SpecError(f"{call.name}: the driver has no {treatment.driver}")
    parameters = symbols[treatment.driver]
    if len(parameters) != len(call.parameters):
        counts = f"{len(parameters)} parameters, not {len(call.parameters)}"
        raise SpecError(f"{call.name} {major.number}: {treatment.driver} has {counts}")
    pairs = zip(call.parameters, parameters, strict=True)
    passed = ", ".join(f"pass<{theirs.type}>({argument(name, call, ours.name)})" for ours, theirs in pairs)
    started = "enter" if treatment.kind == "forward" else "enter_driver"
    return (
        f"if (const cudaError_t failed = {started}(); failed != cudaSuccess) return finish(failed); "
        f"return finish(weft::cudart::driver().{treatment.driver}({passed}));"
    )


def error_table(major: Major) -> str:
    texts = error_texts()
    lines = []
    for name, value in major.errors():
        text = f'"{texts[name]}"' if name in texts else "nullptr"
        lines.append(f'    {{{value}, "{name}", {text}}},')
    head = "namespace weft::cudart {\n\n// A text of null: the driver's code of the same number has one.\n"
    return (
        f"{head}const ErrorEntry kErrors[{len(lines)}] = {{\n"
        + "\n".join(lines)
        + (f"\n}};\nconst std::size_t kErrorCount = {len(lines)};\n\n}}  // namespace weft::cudart\n")
    )
