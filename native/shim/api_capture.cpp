// Stream capture. What the calls on a capturing stream become is in their own files; the rules are in graph/capture.h.
#include "gen/shim_api.h"
#include "graph/capture.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find(CUstream handle, Stream** stream) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    return find_stream(*context, handle, stream);
}

bool is_blocking(const Stream& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    // The legacy default stream is ordered with all others: it cannot stand apart.
    if (stream->number == 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return graph::begin_capture(stream->capturing, stream->context, is_blocking(*stream), mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                                     std::size_t count, CUstreamCaptureMode mode) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    if (stream->number == 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return graph::begin_capture_to(stream->capturing, stream->context, is_blocking(*stream), mode, graph, after, count);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    return graph::end_capture(stream->capturing, graph);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    *status = graph::is_any_capturing() ? graph::capture_status(stream->capturing) : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return cuStreamGetCaptureInfo_v2(handle, status, id, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, std::size_t* count) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    return graph::capture_info(stream->capturing, status, id, graph, after, count);
}

// Edges of captures carry no data.
CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, const CUgraphEdgeData** data, std::size_t* count) {
    if (data != nullptr) *data = nullptr;
    return cuStreamGetCaptureInfo_v2(handle, status, id, graph, after, count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* after, std::size_t count, unsigned int flags) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    return graph::set_capture_dependencies(stream->capturing, after, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* after, const CUgraphEdgeData*,
                                              std::size_t count, unsigned int flags) {
    return cuStreamUpdateCaptureDependencies(handle, after, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) { return graph::exchange_mode(mode); }

}  // namespace weft::shim::api
