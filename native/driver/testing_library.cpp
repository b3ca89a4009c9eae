// A library shaped like the driver's that implements two calls, for tests of the stubs, the exports and the loader.
#include "driver/proc_address.h"
#include "driver/symbols.h"
#include "gen/cuda_names.h"

extern "C" int weft_unsupported(const char*) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    const std::span addresses(weft::driver::kSymbolAddresses, weft::driver::kSymbolCount);
    return weft::driver::get_proc_address(addresses, CUDA_VERSION, symbol, function, cuda_version, flags, status);
}

#ifdef WEFT_TESTING_IS_SHIM
extern "C" __attribute__((visibility("default"))) int weftIsShim() { return 1; }
#endif

// Not in the list of exports, so it must stay inside although its visibility is default.
extern "C" __attribute__((visibility("default"))) int not_a_driver_symbol() { return 0; }
