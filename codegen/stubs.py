"""spec/cuda/abi.json -> native/gen/driver_stubs.cpp and driver_exports.map, for libraries shaped like the driver's.

Every known symbol gets a weak stub; a library implements a call by defining it. See docs/design/codegen.md.
"""

from __future__ import annotations

from codegen.records import Abi, load_abi

STUBS = """\
// Weak stubs of every known driver symbol and the table of their addresses in the order of kSymbolNames. Compiled into each
// library that is shaped like the driver's, as an object (never through an archive). A strong definition of the same symbol in
// the same library wins over the stub, in the table as well. The stubs take no parameters: callers may pass any.
#include "driver/symbols.h"

using Result = int;

#define WEFT_STUB(name) \\
    extern "C" __attribute__((weak, visibility("default"))) Result name() { return weft_unsupported(#name); }

"""

# Exports of Weft's own that the version script lets through if a library defines them.
OWN_EXPORTS = ("weftMemoryNote", "weftHostAccess", "weftNullLaunchCount", "weftIsShim")


def build_stubs() -> str:
    return render_stubs(load_abi())


def render_stubs(abi: Abi) -> str:
    symbols = abi.all_symbols()
    lines = [f"WEFT_STUB({symbol})" for symbol in symbols]
    lines += ["", "#undef WEFT_STUB", "", "namespace weft::driver {", ""]
    lines += ["// Functions are kept as untyped addresses, as cuGetProcAddress hands them out.", ""]
    lines += [f"void* const kSymbolAddresses[{len(symbols)}] = {{"]
    lines += [f"    reinterpret_cast<void*>(&{symbol})," for symbol in symbols]
    lines += ["};", "", "}  // namespace weft::driver", ""]
    return STUBS + "\n".join(lines)


def build_exports() -> str:
    names = [*load_abi().all_symbols(), *OWN_EXPORTS]
    return "{\n  global:\n" + "".join(f"    {name};\n" for name in names) + "  local:\n    *;\n};\n"
