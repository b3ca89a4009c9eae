// The driver's functions by name, at the version that the runtime was built for.
#include "cudart/entry.h"

namespace weft::cudart::api {
namespace {

cudaError_t find_entry(const char* symbol, void** function, int version, unsigned long long flags,
                       cudaDriverEntryPointQueryResult* status) {
    if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter_driver());
    CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = driver().cuGetProcAddress_v2(symbol, function, version, flags, &query);
    if (status == nullptr) return to_error(result);
    *status = static_cast<cudaDriverEntryPointQueryResult>(query);
    return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : to_error(result);  // the status says it
}

unsigned long long with_default(unsigned long long flags, CUstream default_stream) {
    if (flags != 0 || default_stream == nullptr) return flags;
    return CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status, CUstream default_stream) {
    return find_entry(symbol, function, kCudartVersion, with_default(flags, default_stream), status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status,
                                             CUstream default_stream) {
    return find_entry(symbol, function, static_cast<int>(version), with_default(flags, default_stream), status);
}

}  // namespace weft::cudart::api
