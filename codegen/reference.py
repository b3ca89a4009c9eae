"""spec/cuda -> docs/reference/cuda-calls.md: what Weft does with each driver call."""

from __future__ import annotations

from codegen.calls import Call, load_calls
from codegen.records import Abi, load_abi

HEAD = """\
# CUDA driver calls

What Weft does with each call of the CUDA driver API, as of CUDA {major}.{minor}. Written by `python -m codegen` from
`spec/cuda/calls.toml`; how to add a call: [add a driver call](../howto/add-a-driver-call.md).

* **local**: answered in the client, never touches the network. **async**: sent without waiting. **wait**: sent, and waits
  for the answer. **custom**: hand-written on the frames named.
* Errors *returned* come from the call itself; *deferred* ones from a later call of the same context, as CUDA allows.
* Priority: P0 every client calls it, P1 programs on the runtime API, P2 frameworks, P3 rare.
* A symbol that is exported but not listed here answers CUDA_ERROR_NOT_SUPPORTED, and the first such call is logged. So do the
  symbols of CUDA 2's 32-bit interface (`cuMemAlloc` without a suffix and its like): they are never aliases of the newer ones.

{counts}

| call | class | priority | frame (opcode) | errors | symbols | note |
|---|---|---|---|---|---|---|
"""


def build() -> str:
    return render(load_abi(), load_calls())


def render(abi: Abi, calls: tuple[Call, ...]) -> str:
    supported = {call.name for call in calls}
    missing = [name for name in sorted(abi.names) if name not in supported]
    counts = f"{len(supported)} of {len(abi.names)} calls are supported."
    head = HEAD.format(major=abi.cuda_version // 1000, minor=abi.cuda_version % 1000 // 10, counts=counts)
    rows = "".join(row(call) for call in sorted(calls, key=lambda call: call.name))
    listed = "\n".join(f"`{name}`" for name in missing)
    return f"{head}{rows}\n## Not supported\n\nExported, answered with CUDA_ERROR_NOT_SUPPORTED:\n\n{listed}\n"


def row(call: Call) -> str:
    frames = f"{call.name} ({call.opcode})" if call.opcode is not None else ", ".join(call.frames)
    symbols = " ".join(f"`{s.symbol}`" for i in call.implementations for s in i.served)
    return f"| {call.name} | {call.klass} | {call.priority} | {frames} | {call.errors} | {symbols} | {call.doc} |\n"
