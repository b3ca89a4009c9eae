// Host functions and stream callbacks: one frame each; the stream waits for the answer on the other side.
#include "gen/shim_api.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult add(CUstream handle, HostCall call) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Stream* stream;
    if (const CUresult result = find_stream(*context, handle, &stream); result != CUDA_SUCCESS) return result;
    if (is_capturing(*stream)) [[unlikely]] {
        // A callback wants to know of errors, which a graph has nobody to tell.
        if (call.callback != nullptr) return graph::refuse_capture(stream->capturing, CUDA_ERROR_NOT_SUPPORTED);
        return graph::capture_work(stream->capturing, graph::HostWork{call.function, call.data});
    }
    Runtime& runtime = *Runtime::get();
    const std::uint32_t number = runtime.next_number();
    if (const CUresult added = runtime.callbacks().add(number, call); added != CUDA_SUCCESS) return added;
    runtime.callbacks().expect();
    return submit<wire::HostFunction>(*stream, 0, [&](auto& frame, std::byte*) { frame.call = number; });
}

}  // namespace

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(stream, {.function = function, .data = data});
}

// How the GPU's side waits is the executor's choice.
CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn function, void* data, unsigned int mode) {
    if (mode > 1) return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchHostFunc(stream, function, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned int flags) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return add(stream, {.data = data, .callback = callback, .stream = stream});
}

}  // namespace weft::shim::api
