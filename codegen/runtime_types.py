"""spec/cuda/runtime_abi.json -> native/gen/cudart_types_N.h: types and values of one major of the runtime."""

from __future__ import annotations

from codegen.cuda_abi import type_text
from codegen.runtime_records import Major, load_major

HEAD = """\
// Types and values of the CUDA runtime's interface, major {number}, with their layout checked.
#pragma once

#include <cstddef>

#include "gen/cuda_abi.h"

// NOLINTBEGIN
inline constexpr int kCudartVersion = {version};

"""


def build_12() -> str:
    return render(load_major("12"))


def build_13() -> str:
    return render(load_major("13"))


def render(major: Major) -> str:
    head = HEAD.format(number=major.number, version=major.version)
    return head + "\n".join(type_text(record) for record in major.types) + "// NOLINTEND\n"
