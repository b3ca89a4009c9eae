// cuGetProcAddress for libraries shaped like the driver's: which symbol answers for a name at a CUDA version. Pure;
// knows no library. Design note: docs/design/codegen.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gen/cuda_abi.h"

namespace weft::driver {

struct ProcAddress {
    void* address = nullptr;  // nullptr unless the query succeeded
    CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

// `addresses`: of the symbols, in the order of kSymbolNames. `name` is a base name (cuMemAlloc, never cuMemAlloc_v2).
// With CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM the per-thread variant is preferred where one exists.
ProcAddress find_proc_address(std::span<void* const> addresses, std::string_view name, int cuda_version,
                              cuuint64_t flags);

// The whole of cuGetProcAddress_v2 (status may be null), for a library that reports driver_version.
CUresult get_proc_address(std::span<void* const> addresses, int driver_version, const char* name, void** function,
                          int cuda_version, cuuint64_t flags, CUdriverProcAddressQueryResult* status);

}  // namespace weft::driver
