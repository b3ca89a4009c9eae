"""spec/cuda/calls.toml -> native/gen/call_ids.h: a number and a name for each supported call, for counting and tracing."""

from __future__ import annotations

from codegen.calls import Call, load_calls


def build() -> str:
    return render(load_calls())


def render(calls: tuple[Call, ...]) -> str:
    names = [call.name for call in calls]
    return "\n".join(
        [
            "// The supported driver calls, for counting and tracing. The numbers are good for one build only.",
            "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\nnamespace weft::shim {\n",
            "enum class CallId : std::uint16_t {",
            *(f"    {name}," for name in names),
            "};",
            f"inline constexpr std::size_t kCallCount = {len(names)};\n",
            "inline constexpr const char* kCallNames[kCallCount] = {",
            *(f'    "{name}",' for name in names),
            "};\n",
            "inline const char* call_name(CallId id) {\n    return kCallNames[static_cast<std::size_t>(id)];\n}\n",
            "}  // namespace weft::shim\n",
        ]
    )
