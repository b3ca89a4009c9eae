"""spec/cuda/calls.toml -> native/gen/executor_dispatch.{h,cpp}: the executor's side of the calls that have a generated frame."""

from __future__ import annotations

from codegen.calls import SCALARS, Argument, Call, enum_types, frame_of, load_calls
from codegen.records import Abi, load_abi

HEADER = """\
// The executor's side of the driver calls that have a frame of their own (opcodes from 256 on).
// The executor hands in a resolver, and has made the frame's context current and done what the frame's stream asks for.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "gen/cuda_abi.h"
#include "gen/driver_table.h"

namespace weft::executor {

// Finds the driver's handles behind the client's numbers, in the context of the frame. A number that is not known gives
// CUDA_ERROR_INVALID_HANDLE.
class CallResolver {
  public:
    virtual ~CallResolver() = default;
    virtual CUresult stream(std::uint32_t number, CUstream* stream) = 0;
    virtual CUresult event(std::uint32_t number, CUevent* event) = 0;
    virtual CUresult function(std::uint32_t module, std::uint32_t index, CUfunction* function) = 0;
};

// Runs one frame. An error says that the frame is malformed: the session ends. Else *result is what the driver said, and
// `reply` has the tail of the REPLY of a waiting frame.
using CallRunner = Status (*)(CallResolver& resolver, const driver::DriverTable& driver, std::span<const std::byte> frame,
                              CUresult* result, ByteWriter& reply);

// nullptr for an opcode that is no such call. Whether it waits and which stream orders it: wire::find_frame_info.
CallRunner find_call_runner(std::uint16_t opcode);

}  // namespace weft::executor
"""
SOURCE_HEAD = """\
#include "gen/executor_dispatch.h"

#include <array>
#include <cstring>

#include "gen/wire_frames.h"

namespace weft::executor {
namespace {

using driver::DriverTable;

constexpr std::uint32_t kMaxLaunchAttributes = 64;

// A launch configuration out of a frame, for calls that only ask about it. Attributes that hold pointers or handles of the
// client are left out.
struct Configuration {
    CUlaunchConfig config{};
    std::array<CUlaunchAttribute, kMaxLaunchAttributes> attributes{};
};

bool is_plain_attribute(CUlaunchAttributeID id) {
    switch (id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return true;
        default: return false;
    }
}

template <typename Fields>
Status read_configuration(const Fields& fields, std::span<const std::byte> tail, Configuration* out) {
    if (fields.attribute_count > kMaxLaunchAttributes || fields.attribute_count * sizeof(CUlaunchAttribute) > tail.size()) {
        return Status::error(ErrorCode::protocol, "launch attributes are cut off or too many");
    }
    unsigned kept = 0;
    for (std::uint32_t i = 0; i < fields.attribute_count; ++i) {
        CUlaunchAttribute& attribute = out->attributes[kept];
        std::memcpy(&attribute, tail.data() + i * sizeof(attribute), sizeof(attribute));
        if (is_plain_attribute(attribute.id)) ++kept;
    }
    out->config = {fields.grid_x,  fields.grid_y,       fields.grid_z, fields.block_x,          fields.block_y,
                   fields.block_z, fields.shared_bytes, nullptr,       out->attributes.data(), kept};
    return Status::ok();
}

"""
SIGNATURE = (
    "[[maybe_unused]] CallResolver& resolver, const DriverTable& driver, std::span<const std::byte> frame,\n"
    "    CUresult* result, [[maybe_unused]] ByteWriter& reply"
)


def build_header() -> str:
    return HEADER


def build_source() -> str:
    return render(load_abi(), load_calls())


def render(abi: Abi, calls: tuple[Call, ...]) -> str:
    with_frames = sorted((call for call in calls if call.opcode is not None), key=lambda call: call.opcode or 0)
    runners = "".join(runner(abi, call) for call in with_frames)
    structs = [(frame_of(abi, call).struct, call.name) for call in with_frames]
    cases = "".join(f"        case wire::{struct}::kOpcode:\n            return run_{name};\n" for struct, name in structs)
    lookup = f"CallRunner find_call_runner(std::uint16_t opcode) {{\n    switch (opcode) {{\n{cases}"
    tail = "        default:\n            return nullptr;\n    }\n}\n\n}  // namespace weft::executor\n"
    return f"{SOURCE_HEAD}{runners}}}  // namespace\n\n{lookup}{tail}"


def runner(abi: Abi, call: Call) -> str:
    frame = frame_of(abi, call)
    lines = [f"Status run_{call.name}({SIGNATURE}) {{", f"    auto view = wire::decode<wire::{frame.struct}>(frame);"]
    lines += ["    if (!view) return view.take_status();", "    [[maybe_unused]] const auto& fields = view->fields;"]
    if call.is_stream_ordered:
        lines += ["    CUstream stream_found = nullptr;", *must("resolver.stream(fields.stream, &stream_found)")]
    for a in call.arguments:
        lines += before(a)
    passed = [passing(abi, a) for a in call.arguments]
    if call.stream == "default":
        passed.append("stream_found")
    lines += [
        f"    if (driver.{call.driver} == nullptr) {{",
        "        *result = CUDA_ERROR_NOT_SUPPORTED;",
        "        return Status::ok();",
        "    }",
        f"    *result = driver.{call.driver}({', '.join(passed)});",
    ]
    outs = [a for a in call.arguments if a.kind in ("out", "out?")]
    lines += [f"    if (*result == CUDA_SUCCESS) reply.value({a.name}_out);" for a in outs]
    return "\n".join([*lines, "    return Status::ok();", "}\n"]) + "\n"


def must(expression: str) -> list[str]:
    return [f"    if (*result = {expression}; *result != CUDA_SUCCESS) return Status::ok();"]


def before(a: Argument) -> list[str]:
    """Statements that make the argument's value."""
    kind = a.parameter.type
    if kind == "CUfunction":
        return [
            f"    CUfunction {a.name}_found = nullptr;",
            *must(f"resolver.function(fields.module, fields.function, &{a.name}_found)"),
        ]
    if kind == "CUevent":
        return [f"    CUevent {a.name}_found = nullptr;", *must(f"resolver.event(fields.{a.name}, &{a.name}_found)")]
    if a.kind == "launch_config":
        made = f"read_configuration(fields, view->tail, &{a.name}_read)"
        return [f"    Configuration {a.name}_read;", f"    if (Status status = {made}; !status) return status;"]
    if a.kind in ("out", "out?"):
        return [f"    {a.pointee} {a.name}_out{{}};"]
    return []


def passing(abi: Abi, a: Argument) -> str:
    kind = a.parameter.type
    if kind == "CUstream":
        return "stream_found"
    if kind in ("CUfunction", "CUevent"):
        return f"{a.name}_found"
    if a.kind == "launch_config":
        return f"&{a.name}_read.config"
    if a.kind in ("out", "out?"):
        return f"&{a.name}_out"
    needs_cast = kind in enum_types(abi) or (SCALARS.get(kind) == "u32" and kind != "unsigned int")
    return f"static_cast<{kind}>(fields.{a.name})" if needs_cast else f"fields.{a.name}"
