"""The list of all generated files."""

from __future__ import annotations

from codegen import cuda_abi, cuda_names, driver_table, stubs, wire_frames, wire_records
from codegen.output import Output
from codegen.records import ABI_PATH, CALLS_PATH, ERRORS_PATH, FRAMES_PATH

OUTPUTS: tuple[Output, ...] = (
    Output("native/gen/cuda_abi.h", (ABI_PATH,), cuda_abi.build),
    Output("native/gen/cuda_names.h", (ABI_PATH,), cuda_names.build_header),
    Output("native/gen/cuda_names.cpp", (ABI_PATH, ERRORS_PATH), cuda_names.build_source),
    Output("native/gen/driver_table.h", (ABI_PATH, CALLS_PATH), driver_table.build_header),
    Output("native/gen/driver_table.cpp", (ABI_PATH, CALLS_PATH), driver_table.build_source),
    Output("native/gen/driver_stubs.cpp", (ABI_PATH,), stubs.build_stubs),
    Output("native/gen/driver_exports.map", (ABI_PATH,), stubs.build_exports),
    Output("native/gen/wire_frames.h", (FRAMES_PATH, CALLS_PATH), wire_frames.build),
    Output("native/gen/wire_records.h", (FRAMES_PATH,), wire_records.build_cpp),
    Output("src/weft/gen/preamble.py", (FRAMES_PATH,), wire_records.build_python),
)
