// Streams and what is put into them besides copies and kernels.
#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

constexpr int kGreatestPriority = -5;

CUresult create(CUstream* out, unsigned flags, int priority) {
    WEFT_ENTER(entry);
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority > 0) priority = 0;
    if (priority < kGreatestPriority) priority = kGreatestPriority;
    const auto role = (flags & CU_STREAM_NON_BLOCKING) != 0 ? Stream::Role::non_blocking : Stream::Role::blocking;
    Ref<Stream> stream(new Stream(entry.context, role, flags, priority, entry->next_stream_id()));
    HandleTable::instance().insert(stream.get());
    entry->add_object(*stream);
    *out = stream->handle_as<CUstream>();
    return CUDA_SUCCESS;
}

// The stream, if the call's out pointer is good.
CUresult need_stream(CUstream handle, const void* out, Ref<Stream>* stream) {
    WEFT_ENTER(entry);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return resolve_stream(entry, handle, stream);
}

}  // namespace

WEFT_API CUresult cuStreamCreate(CUstream* out, unsigned int flags) { return create(out, flags, 0); }
WEFT_API CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
    return create(out, flags, priority);
}

WEFT_API CUresult cuStreamDestroy_v2(CUstream handle) {
    WEFT_ENTER(entry);
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    const Ref<Stream> stream = HandleTable::instance().remove<Stream>(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    weft::graph::drop_stream(stream->capturing);
    stream->context().forget_object(*stream);  // what is queued in it keeps it alive
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamSynchronize(CUstream handle) {
    const OutputPoint point;
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    WEFT_TRY(refuse_while_capturing(*stream));
    Scheduler& scheduler = driver().scheduler;
    // The legacy default stream stands for the blocking streams too.
    if (stream->role() == Stream::Role::legacy) {
        for (const Ref<Stream>& other : scheduler.busy_streams(stream->context())) {
            if (other->role() == Stream::Role::blocking) scheduler.wait_idle(*other);
        }
    }
    scheduler.wait_idle(*stream);
    return stream->context().status();
}

WEFT_API CUresult cuStreamQuery(CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    WEFT_TRY(refuse_while_capturing(*stream));
    if (!stream->idle()) return CUDA_ERROR_NOT_READY;
    if (stream->role() == Stream::Role::legacy) {
        for (const Ref<Stream>& other : driver().scheduler.busy_streams(stream->context())) {
            if (other->role() == Stream::Role::blocking) return CUDA_ERROR_NOT_READY;
        }
    }
    return stream->context().status();
}

WEFT_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const Ref<Event> event = find<Event>(event_handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_capturing() || event->captured.is_captured) {
        if (stream->is_capturing() && (flags & CU_EVENT_WAIT_EXTERNAL) != 0)
            return weft::graph::capture_work(stream->capturing, weft::graph::EventWork{event_handle, false});
        return weft::graph::capture_wait(stream->capturing, &stream->context(),
                                         stream->role() == Stream::Role::blocking,
                                         stream->role() == Stream::Role::legacy, event->captured);
    }
    driver().scheduler.wait_event(*stream, *event);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, priority, &stream));
    *priority = stream->priority();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, flags, &stream));
    *flags = stream->flags();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, id, &stream));
    *id = stream->context().id() << 32 | stream->id();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, context, &stream));
    *context = stream->context().handle_as<CUcontext>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    if (green != nullptr) *green = nullptr;
    return cuStreamGetCtx(handle, context);
}

WEFT_API CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, device, &stream));
    *device = stream->context().device();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    WEFT_ENTER(entry);
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    WEFT_TRY(check_captures(*stream));
    if (stream->is_capturing())
        return weft::graph::capture_work(stream->capturing, weft::graph::HostWork{function, data});
    auto operation = std::make_unique<HostFunctionOperation>();
    operation->function = function;
    operation->data = data;
    operation->stream = stream;
    driver().scheduler.enqueue(*stream, std::move(operation));
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
    WEFT_ENTER(entry);
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    if (stream->is_capturing()) return weft::graph::refuse_capture(stream->capturing, CUDA_ERROR_NOT_SUPPORTED);
    WEFT_TRY(check_captures(*stream));
    auto operation = std::make_unique<HostFunctionOperation>();
    operation->callback = callback;
    operation->stream_handle = handle;
    operation->data = data;
    operation->stream = stream;
    operation->runs_after_error = true;
    driver().scheduler.enqueue(*stream, std::move(operation));
    return CUDA_SUCCESS;
}
