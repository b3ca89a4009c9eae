// Streams. Numbered here; only synchronisation waits, and a query once per new work.
#include <algorithm>

#include "gen/shim_api.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find(CUstream handle, Context** context, Stream** stream) {
    if (const CUresult result = usable_context(context); result != CUDA_SUCCESS) return result;
    return find_stream(**context, handle, stream);
}

// True if all work sent to the stream is known to be complete.
bool is_known_idle(const Stream& stream) {
    const std::uint64_t work = stream.last_work.load();
    return stream.done_work.load() >= work || Runtime::get()->progress().done() >= work;
}

bool is_special(CUstream handle) { return reinterpret_cast<std::uintptr_t>(handle) <= 2; }

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if ((flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
    const wire::DeviceInfo& info = context->device->info;
    priority = std::min(std::max(priority, info.stream_priority_greatest), info.stream_priority_least);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = Runtime::get()->open_stream(*context, flags, priority, &stream); result != CUDA_SUCCESS)
        return result;
    *handle = reinterpret_cast<CUstream>(stream->handle);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* handle, unsigned int flags) { return cuStreamCreateWithPriority(handle, flags, 0); }

CUresult cuStreamDestroy_v2(CUstream handle) {
    Stream* stream = Runtime::get()->streams.find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    graph::drop_stream(stream->capturing);
    Runtime::get()->close_stream(*stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    const Reply reply = submit_and_wait<wire::StreamSync>(*stream, 0, [](auto&, std::byte*) {});
    if (reply.status != CUDA_SUCCESS) return settle(*stream->context, reply.status);
    return take_error(*stream->context);
}

CUresult cuStreamQuery(CUstream handle) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    if (graph::is_any_capturing()) [[unlikely]] {
        CUresult refused;
        if (is_refused(*stream, &refused)) return refused;
    }
    Runtime& runtime = *Runtime::get();
    runtime.session().drain();
    if (const CUresult error = take_error(*stream->context); error != CUDA_SUCCESS) return error;
    if (is_known_idle(*stream)) return CUDA_SUCCESS;
    const bool watched =
        stream->number != 0 && stream->watch.load() != 0 && stream->watched_work.load() >= stream->last_work.load();
    if (watched) return CUDA_ERROR_NOT_READY;
    const std::uint32_t watch = runtime.next_number();
    const Reply reply = submit_and_wait<wire::StreamQuery>(*stream, 0, [&](auto& frame, std::byte*) {
        frame.watch = watch;
        stream->watched_work = runtime.progress().submitted() + 1;  // the number that this frame itself gets
        stream->watch = watch;
    });
    return reply.status == CUDA_ERROR_NOT_READY ? reply.status : settle(*stream->context, reply.status);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    Event* event = Runtime::get()->events.find(event_handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_capturing(*stream) || event->captured.is_captured) [[unlikely]] {
        if (is_capturing(*stream) && (flags & CU_EVENT_WAIT_EXTERNAL) != 0)
            return graph::capture_work(stream->capturing, graph::EventWork{event_handle, false});
        return graph::capture_wait(stream->capturing, stream->context, (stream->flags & CU_STREAM_NON_BLOCKING) == 0,
                                   stream->number == 0, event->captured);
    }
    return submit<wire::StreamWaitEvent>(*stream, 0, [&](auto& frame, std::byte*) {
        frame.event = event->number;
        frame.flags = flags;
    });
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    *id = is_special(handle) && stream->number == 0 ? context->id << 32 | 1 : context->id << 32 | stream->number;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    *device = stream->context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* of) {
    Context* context;
    Stream* stream;
    if (const CUresult result = find(handle, &context, &stream); result != CUDA_SUCCESS) return result;
    *of = reinterpret_cast<CUcontext>(stream->context->handle);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    if (green != nullptr) *green = nullptr;
    return cuStreamGetCtx(handle, context);
}

}  // namespace weft::shim::api
