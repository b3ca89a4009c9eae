"""The list of all generated files."""

from __future__ import annotations

from codegen import (
    call_ids,
    cuda_abi,
    cuda_names,
    driver_table,
    executor_dispatch,
    frames,
    reference,
    runtime_entries,
    runtime_reference,
    runtime_types,
    shim_entries,
    stubs,
    wire_records,
)
from codegen.output import Output
from codegen.records import ABI_PATH, CALLS_PATH, ERRORS_PATH, FRAMES_PATH
from codegen.runtime_records import RUNTIME_ABI_PATH, RUNTIME_PATH

RUNTIME = (RUNTIME_ABI_PATH, RUNTIME_PATH, ABI_PATH)

OUTPUTS: tuple[Output, ...] = (
    Output("native/gen/cuda_abi.h", (ABI_PATH,), cuda_abi.build),
    Output("native/gen/cuda_names.h", (ABI_PATH,), cuda_names.build_header),
    Output("native/gen/cuda_names.cpp", (ABI_PATH, ERRORS_PATH), cuda_names.build_source),
    Output("native/gen/driver_table.h", (ABI_PATH, CALLS_PATH), driver_table.build_header),
    Output("native/gen/driver_table.cpp", (ABI_PATH, CALLS_PATH), driver_table.build_source),
    Output("native/gen/driver_stubs.cpp", (ABI_PATH,), stubs.build_stubs),
    Output("native/gen/driver_exports.map", (ABI_PATH,), stubs.build_exports),
    Output("native/gen/wire_frames.h", (FRAMES_PATH, CALLS_PATH, ABI_PATH), frames.build),
    Output("native/gen/wire_records.h", (FRAMES_PATH,), wire_records.build_cpp),
    Output("src/weft/gen/preamble.py", (FRAMES_PATH,), wire_records.build_python),
    Output("native/gen/call_ids.h", (CALLS_PATH,), call_ids.build),
    Output("native/gen/shim_api.h", (CALLS_PATH, ABI_PATH), shim_entries.build_api),
    Output("native/gen/shim_entries.cpp", (CALLS_PATH, ABI_PATH), shim_entries.build_entries),
    Output("native/gen/executor_dispatch.h", (CALLS_PATH, ABI_PATH), executor_dispatch.build_header),
    Output("native/gen/executor_dispatch.cpp", (CALLS_PATH, ABI_PATH), executor_dispatch.build_source),
    Output("native/gen/cudart_types_12.h", (RUNTIME_ABI_PATH,), runtime_types.build_12),
    Output("native/gen/cudart_types_13.h", (RUNTIME_ABI_PATH,), runtime_types.build_13),
    Output("native/gen/cudart_api_12.h", RUNTIME, runtime_entries.build_api_12),
    Output("native/gen/cudart_api_13.h", RUNTIME, runtime_entries.build_api_13),
    Output("native/gen/cudart_entries_12.cpp", RUNTIME, runtime_entries.build_entries_12),
    Output("native/gen/cudart_entries_13.cpp", RUNTIME, runtime_entries.build_entries_13),
    Output("native/gen/cudart_exports_12.map", (RUNTIME_ABI_PATH,), runtime_entries.build_exports_12),
    Output("native/gen/cudart_exports_13.map", (RUNTIME_ABI_PATH,), runtime_entries.build_exports_13),
    Output("native/gen/cudart_driver_calls.h", (ABI_PATH,), runtime_entries.build_driver_calls),
    Output("docs/reference/cuda-calls.md", (CALLS_PATH, ABI_PATH), reference.build),
    Output("docs/reference/cuda-runtime-calls.md", RUNTIME, runtime_reference.build),
)
