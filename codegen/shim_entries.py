"""spec/cuda/calls.toml -> native/gen/shim_entries.cpp and shim_api.h: the exported side of the shim.

Each implemented symbol gets a function `serve_<symbol>`: it checks what the spec says and then calls the hand-written function of
shim_api.h, or, for async and wait calls, sends the frame itself. Each exported symbol is a few lines around it.
"""

from __future__ import annotations

from codegen.calls import Argument, Call, FieldSource, Implementation, Served, field_sources, frame_of, load_calls
from codegen.records import load_abi

API_HEAD = """\
// The functions that the shim implements by hand, one per symbol of the classes local and custom. The exported entries
// (gen/shim_entries.cpp) call them after cuInit has succeeded, with pointers checked as spec/cuda/calls.toml says, errno kept,
// and CU_STREAM_PER_THREAD put in for the default stream where the program uses per-thread variants. `default_stream`: calls
// without a stream parameter get CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
#pragma once

#include "gen/cuda_abi.h"

#ifndef WEFT_ABI_TYPES_ONLY
#error "compile the shim with WEFT_ABI_TYPES_ONLY: else calls among these functions are ambiguous (see gen/cuda_abi.h)"
#endif

namespace weft::shim::api {

"""
ENTRIES_HEAD = """\
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "gen/call_ids.h"
#include "gen/cuda_abi.h"
#include "gen/shim_api.h"
#include "gen/wire_frames.h"
#include "shim/call_scope.h"
#include "shim/callbacks.h"
#include "shim/current.h"
#include "shim/device_range.h"
#include "shim/library.h"
#include "shim/runtime.h"
#include "shim/submit.h"

namespace weft::shim {
namespace {

constexpr std::uint32_t kMaxLaunchAttributes = 64;

// Products and sums of the lengths in the spec: too large stays too large.
[[maybe_unused]] std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t out;
    return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}
[[maybe_unused]] std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    std::uint64_t out;
    return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

// The stream of a per-thread variant.
[[maybe_unused]] CUstream per_thread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

// The same for a launch configuration, copied to *copy.
[[maybe_unused]] const CUlaunchConfig* per_thread(const CUlaunchConfig* config, CUlaunchConfig* copy) {
    if (config == nullptr) return nullptr;
    *copy = *config;
    copy->hStream = per_thread(copy->hStream);
    return copy;
}

"""


def build_api() -> str:
    lines = []
    for call in load_calls():
        if not call.is_generated:
            lines += [f"CUresult {i.symbol}({parameters(i, call)});" for i in call.implementations]
    return API_HEAD + "\n".join(lines) + "\n\n}  // namespace weft::shim::api\n"


def build_entries() -> str:
    return render_entries(load_calls())


def render_entries(calls: tuple[Call, ...]) -> str:
    bodies = [serve_function(call, i) for call in calls for i in call.implementations]
    exports = [export(call, i, s) for call in calls for i in call.implementations for s in i.served]
    return (
        f"{ENTRIES_HEAD}{''.join(bodies)}}}  // namespace\n}}  // namespace weft::shim\n\n"
        "using weft::shim::CallId;\nusing weft::shim::CallScope;\n\n#pragma GCC visibility push(default)\n\n"
        + "".join(exports)
        + "#pragma GCC visibility pop\n"
    )


def parameters(i: Implementation, call: Call) -> str:
    """The parameters of the implementation: the symbol's, and the default stream where it has one."""
    listed = [a.parameter.declaration for a in i.arguments]
    if call.has_default_stream:
        listed.append("CUstream default_stream")
    return ", ".join(listed)


# ------------------------------------------------------------------------------------------------------------- exported


def export(call: Call, i: Implementation, served: Served) -> str:
    declared = ", ".join(a.parameter.declaration for a in i.arguments)
    lines = [f'extern "C" CUresult {served.symbol}({declared}) {{', f"    CallScope scope(CallId::{call.name});"]
    passed = []
    for a in i.arguments:
        if served.per_thread and a.parameter.type == "CUstream":
            passed.append(f"weft::shim::per_thread({a.name})")
        elif served.per_thread and "CUlaunchConfig" in a.parameter.type:
            lines.append(f"    CUlaunchConfig {a.name}_copy;")
            passed.append(f"weft::shim::per_thread({a.name}, &{a.name}_copy)")
        else:
            passed.append(a.name)
    if call.has_default_stream:
        passed.append("CU_STREAM_PER_THREAD" if served.per_thread else "CU_STREAM_LEGACY")
    lines += [f"    return scope.finish(weft::shim::serve_{i.symbol}({', '.join(passed)}));", "}\n"]
    return "\n".join(lines) + "\n"


# ----------------------------------------------------------------------------------------------------------------- serve


def serve_function(call: Call, i: Implementation) -> str:
    lines = [f"CUresult serve_{i.symbol}({parameters(i, call)}) {{"]
    if not call.before_init:
        lines.append("    if (Runtime::get() == nullptr || is_callback_thread()) [[unlikely]] return Runtime::absent();")
    checked = [f"{a.name} == nullptr" for a in i.arguments if a.must_not_be_null]
    if checked:
        lines.append(f"    if ({' || '.join(checked)}) [[unlikely]] return CUDA_ERROR_INVALID_VALUE;")
    if call.is_generated:
        lines += generated_body(call)
    else:
        passed = [a.name for a in i.arguments] + (["default_stream"] if call.has_default_stream else [])
        lines.append(f"    return api::{i.symbol}({', '.join(passed)});")
    return "\n".join([*lines, "}\n"]) + "\n"


def generated_body(call: Call) -> list[str]:
    lines = ["    Context* context_found = nullptr;", *must("usable_context(&context_found)")]
    if call.is_stream_ordered:
        handle = call.stream_argument.name if call.stream_argument else "default_stream"
        lines += ["    Stream* stream_found = nullptr;", *must(f"find_stream(*context_found, {handle}, &stream_found)")]
    for a in call.arguments:
        lines += resolve(a)
    lines += [f"    if (!({check})) return CUDA_ERROR_INVALID_VALUE;" for check in call.check]
    if call.skip:
        lines.append(f"    if ({call.skip}) return CUDA_SUCCESS;")
    for a in call.arguments:
        if a.kind == "device":
            lines.append(f"    if (!is_device_range({a.name}, {a.length})) return CUDA_ERROR_INVALID_VALUE;")
    return lines + (async_tail(call) if call.klass == "async" else wait_tail(call))


def must(expression: str) -> list[str]:
    return [f"    if (const CUresult result = {expression}; result != CUDA_SUCCESS) return result;"]


def resolve(a: Argument) -> list[str]:
    if a.parameter.type == "CUfunction":
        found = f"{a.name}_found"
        return [f"    Function* {found} = nullptr;", *must(f"resolve_function({a.name}, *context_found, &{found})")]
    if a.parameter.type == "CUevent":
        found = f"    const Event* {a.name}_found = Runtime::get()->events.find({a.name});"
        return [found, f"    if ({a.name}_found == nullptr) return CUDA_ERROR_INVALID_HANDLE;"]
    if a.kind == "launch_config":
        too_many = f"{a.name}->numAttrs > kMaxLaunchAttributes"
        no_list = f"({a.name}->numAttrs != 0 && {a.name}->attrs == nullptr)"
        return [f"    if ({too_many} || {no_list}) return CUDA_ERROR_INVALID_VALUE;"]
    return []


def sender(call: Call, verb_stream: str, verb_session: str) -> list[str]:
    """The statement that sends the frame; its value is the result or the reply."""
    frame = f"wire::{frame_of(load_abi(), call).struct}"
    config = next((a.name for a in call.arguments if a.kind == "launch_config"), None)
    tail_bytes = f"{config}->numAttrs * sizeof(CUlaunchAttribute)" if config else "0"
    if call.is_stream_ordered:
        head = f"{verb_stream}<{frame}>(*stream_found, {tail_bytes}, "
    else:
        head = f"Runtime::get()->session().{verb_session}<{frame}>(context_found->number, {tail_bytes}, "
    sources = [f for f in field_sources(load_abi(), call) if f.value]
    frame_name = "frame" if sources else ""
    tail_name = "tail" if config else ""
    lines = [f"{head}[&]({frame}& {frame_name}, std::byte* {tail_name}) {{".replace("& ,", "&,").replace("* )", "*)")]
    lines += [f"        {assignment(source)}" for source in sources]
    if config:
        lines.append(f"        if ({config}->numAttrs != 0) std::memcpy(tail, {config}->attrs, {tail_bytes});")
    return [*lines, "    });"]


def assignment(source: FieldSource) -> str:
    return f"frame.{source.name} = {source.value};"


def async_tail(call: Call) -> list[str]:
    first, *rest = sender(call, "submit", "send")
    return [f"    return {first}", *rest]


def wait_tail(call: Call) -> list[str]:
    first, *rest = sender(call, "submit_and_wait", "call")
    lines = [f"    const Reply reply = {first}", *rest]
    outs = [a for a in call.arguments if a.kind in ("out", "out?")]
    if not outs:
        return [*lines, "    return reply.status == CUDA_SUCCESS ? CUDA_SUCCESS : settle(*context_found, reply.status);"]
    lines.append("    if (reply.status != CUDA_SUCCESS) return settle(*context_found, reply.status);")
    lines.append("    ByteReader in(reply.tail);")
    for a in outs:
        value = f"in.value<{a.pointee}>()"
        lines.append(f"    const auto {a.name}_value = {value};")
    lines.append("    if (!in.is_ok()) return CUDA_ERROR_UNKNOWN;  // the executor broke the contract")
    for a in outs:
        guard = f"if ({a.name} != nullptr) " if a.kind == "out?" else ""
        lines.append(f"    {guard}*{a.name} = {a.name}_value;")
    return [*lines, "    return CUDA_SUCCESS;"]
