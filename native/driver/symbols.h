// What a library shaped like the driver's shares: the table of its symbols' addresses, and the hook of its stubs.
// Included by generated stubs, so it must not include gen/cuda_abi.h (the stubs have other parameters).
// docs/design/codegen.md.
#pragma once

#include <cstddef>

// Called by the stub of every call that the library does not implement; returns CUDA_ERROR_NOT_SUPPORTED (801) and may
// log the name once. Each library defines it.
extern "C" int weft_unsupported(const char* name);

namespace weft::driver {

// In the order of kSymbolNames (gen/cuda_names.h), kSymbolCount long.
extern void* const kSymbolAddresses[];

}  // namespace weft::driver
