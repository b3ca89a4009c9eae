// What of streams and events is more than a forward.
#include "cudart/entry.h"
#include "cudart/state.h"

namespace weft::cudart::api {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    if (stream == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    return to_error(driver().cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

// The default streams are no objects of the program.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    WEFT_TRY(enter());
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return cudaErrorInvalidResourceHandle;
    return to_error(driver().cuStreamDestroy_v2(stream));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    if (event == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    return to_error(driver().cuEventCreate(event, CU_EVENT_DEFAULT));
}

#if WEFT_CUDART_MAJOR == 12
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
    WEFT_TRY(enter());
    cuuint64_t number = 0;
    WEFT_TRY(driver().cuStreamGetCaptureInfo_v2(stream, reinterpret_cast<CUstreamCaptureStatus*>(status), &number,
                                                nullptr, nullptr, nullptr));
    if (id != nullptr) *id = number;
    return cudaSuccess;
}
#endif

}  // namespace weft::cudart::api
