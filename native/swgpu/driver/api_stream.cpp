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

// Writes a word of device memory when the stream gets there.
struct WriteValueOperation final : WorkOperation {
    CUresult run() override {
        const std::uint64_t size = wide ? 8 : 4;
        if (!driver().space.accessible(address, size, true)) return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (wide) {
            __atomic_store_n(reinterpret_cast<std::uint64_t*>(address), value, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(reinterpret_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(value),
                             __ATOMIC_RELEASE);
        }
        return CUDA_SUCCESS;
    }
    std::uint64_t address = 0, value = 0;
    bool wide = false;
};

CUresult write_value(CUstream handle, CUdeviceptr address, std::uint64_t value, unsigned flags, bool wide) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const std::uint64_t size = wide ? 8 : 4;
    if ((flags & ~1u) != 0 || address % size != 0 || !driver().space.accessible(address, size, true))
        return CUDA_ERROR_INVALID_VALUE;
    auto operation = std::make_unique<WriteValueOperation>();
    operation->address = address;
    operation->value = value;
    operation->wide = wide;
    driver().scheduler.enqueue(*stream, std::move(operation), true);
    return CUDA_SUCCESS;
}

CUresult wait_value(CUstream handle, CUdeviceptr address, std::uint64_t value, unsigned flags, bool wide) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const std::uint64_t size = wide ? 8 : 4;
    const unsigned condition = flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
    if (condition > CU_STREAM_WAIT_VALUE_NOR || address % size != 0 ||
        !driver().space.accessible(address, size, false)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto operation = std::make_unique<WaitValueOperation>();
    operation->address = address;
    operation->value = value;
    operation->flags = condition;
    operation->wide = wide;
    driver().scheduler.enqueue(*stream, std::move(operation));
    return CUDA_SUCCESS;
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
    stream->context().forget_object(*stream);  // what is queued in it keeps it alive
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamSynchronize(CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
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

// Capturing is not supported, so no stream is ever capturing.
WEFT_API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    Ref<Stream> stream;
    WEFT_TRY(need_stream(handle, status, &stream));
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                            const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
    return cuStreamIsCapturing(handle, status);
}
WEFT_API CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                                            const CUgraphNode**, size_t*) {
    return cuStreamIsCapturing(handle, status);
}
WEFT_API CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t*) {
    return cuStreamIsCapturing(handle, status);
}

WEFT_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    WEFT_ENTER(entry);
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
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
    auto operation = std::make_unique<HostFunctionOperation>();
    operation->callback = callback;
    operation->stream_handle = handle;
    operation->data = data;
    operation->stream = stream;
    operation->runs_after_error = true;
    driver().scheduler.enqueue(*stream, std::move(operation));
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, true);
}
