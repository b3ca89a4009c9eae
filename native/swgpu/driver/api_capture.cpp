// Stream capture. What the calls on a capturing stream become is in their own files; the rules are in graph/capture.h.
#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

CUresult find_capturing(CUstream handle, Ref<Stream>* stream) {
    WEFT_ENTER(entry);
    return resolve_stream(entry, handle, stream);
}

bool is_blocking(const Stream& stream) { return stream.role() == Stream::Role::blocking; }

}  // namespace

WEFT_API CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    // The legacy default stream is ordered with all others: it cannot stand apart.
    if (stream->role() == Stream::Role::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return weft::graph::begin_capture(stream->capturing, &stream->context(), is_blocking(*stream), mode);
}

WEFT_API CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* after,
                                              const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    if (stream->role() == Stream::Role::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return weft::graph::begin_capture_to(stream->capturing, &stream->context(), is_blocking(*stream), mode, graph,
                                         after, count);
}

WEFT_API CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    return weft::graph::end_capture(stream->capturing, graph);
}

WEFT_API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = weft::graph::capture_status(stream->capturing);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                            CUgraph* graph, const CUgraphNode** after, size_t* count) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return weft::graph::capture_info(stream->capturing, status, id, graph, after, count);
}
WEFT_API CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                            CUgraph* graph, const CUgraphNode** after, const CUgraphEdgeData** data,
                                            size_t* count) {
    if (data != nullptr) *data = nullptr;  // edges of captures carry none
    return cuStreamGetCaptureInfo_v2(handle, status, id, graph, after, count);
}
WEFT_API CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return cuStreamGetCaptureInfo_v2(handle, status, id, nullptr, nullptr, nullptr);
}

WEFT_API CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* after, size_t count,
                                                    unsigned int flags) {
    Ref<Stream> stream;
    WEFT_TRY(find_capturing(handle, &stream));
    return weft::graph::set_capture_dependencies(stream->capturing, after, count, flags);
}
WEFT_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* after, const CUgraphEdgeData*,
                                                       size_t count, unsigned int flags) {
    return cuStreamUpdateCaptureDependencies(handle, after, count, flags);
}

WEFT_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    WEFT_TRY(check_ready());
    return weft::graph::exchange_mode(mode);
}
