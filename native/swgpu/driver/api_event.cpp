// Events. A record is a point in a stream; its time is when the stream got there. What is asked of an event alone needs
// no current context.
#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

CUresult elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    WEFT_TRY(check_ready());
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Ref<Event> start = find<Event>(start_handle);
    const Ref<Event> end = find<Event>(end_handle);
    if (!start || !end) return CUDA_ERROR_INVALID_HANDLE;
    if (((start->flags() | end->flags()) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    const Ref<Marker> first = driver().scheduler.last_record(*start);
    const Ref<Marker> last = driver().scheduler.last_record(*end);
    if (!first || !last) return CUDA_ERROR_INVALID_HANDLE;
    if (!first->done.load(std::memory_order_acquire) || !last->done.load(std::memory_order_acquire))
        return CUDA_ERROR_NOT_READY;
    *milliseconds =
        static_cast<float>(static_cast<double>(static_cast<std::int64_t>(last->time_ns - first->time_ns)) / 1e6);
    return CUDA_SUCCESS;
}

}  // namespace

WEFT_API CUresult cuEventCreate(CUevent* out, unsigned int flags) {
    WEFT_ENTER(entry);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0)
        return (flags & CU_EVENT_DISABLE_TIMING) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if ((flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Ref<Event> event(new Event(entry.context, flags));
    HandleTable::instance().insert(event.get());
    entry->add_object(*event);
    *out = event->handle_as<CUevent>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuEventDestroy_v2(CUevent handle) {
    WEFT_TRY(check_ready());
    const Ref<Event> event = HandleTable::instance().remove<Event>(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    event->context().forget_object(*event);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
    WEFT_ENTER(entry);
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    const Ref<Event> event = find<Event>(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, stream_handle, &stream));
    if (&event->context() != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
    WEFT_TRY(check_captures(*stream));
    if (stream->is_capturing()) {
        if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0)
            return weft::graph::capture_work(stream->capturing, weft::graph::EventWork{handle, true});
        return weft::graph::capture_record(stream->capturing, event->captured);
    }
    weft::graph::forget_record(event->captured);
    driver().scheduler.record(*stream, *event);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

WEFT_API CUresult cuEventQuery(CUevent handle) {
    WEFT_TRY(check_ready());
    const Ref<Event> event = find<Event>(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured.is_captured) return weft::graph::refuse_event(event->captured);
    const Ref<Marker> marker = driver().scheduler.last_record(*event);
    if (marker && !marker->done.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_READY;
    return event->context().status();
}

WEFT_API CUresult cuEventSynchronize(CUevent handle) {
    const OutputPoint point;
    WEFT_TRY(check_ready());
    const Ref<Event> event = find<Event>(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured.is_captured) return weft::graph::refuse_event(event->captured);
    const Ref<Marker> marker = driver().scheduler.last_record(*event);
    if (marker && !marker->done.load(std::memory_order_acquire))
        driver().scheduler.wait(*marker->stream, marker->sequence);
    return event->context().status();
}

WEFT_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}
WEFT_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}
