// Events. A query is answered here whenever the answer is known; else it asks once, and the executor tells when the
// event is done.
#include <cstring>

#include "gen/shim_api.h"
#include "graph/capture.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find(CUevent handle, Event** event) {
    *event = Runtime::get()->events.find(handle);
    if (*event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (Runtime::get()->session().is_lost()) return Session::kLost;
    return take_error(*(*event)->context);
}

bool is_known_done(const Event& event) {
    if (event.done_record.load() >= event.record.load()) return true;
    const std::uint64_t work = event.work.load();
    if (Runtime::get()->progress().done() >= work) return true;
    return Runtime::get()->stream_done_work(*event.context, event.stream.load()) >= work;
}

}  // namespace

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0)
        return (flags & CU_EVENT_DISABLE_TIMING) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    std::uint64_t made = 0;
    const CUresult result = Runtime::get()->open_event(*context, flags, &made);
    *handle = reinterpret_cast<CUevent>(made);
    return result;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    if (Runtime::get()->events.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Runtime::get()->close_event(reinterpret_cast<std::uintptr_t>(handle));
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Event* event;
    if (const CUresult result = find(handle, &event); result != CUDA_SUCCESS) return result;
    Stream* stream;
    if (const CUresult result = find_stream(*context, stream_handle, &stream); result != CUDA_SUCCESS) return result;
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_capturing(*stream)) [[unlikely]] {
        if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0)
            return graph::capture_work(stream->capturing, graph::EventWork{handle, true});
        return graph::capture_record(stream->capturing, event->captured);
    }
    graph::forget_record(event->captured);
    return submit<wire::EventRecord>(*stream, 0, [&](auto& frame, std::byte*) {
        frame.event = event->number;
        frame.flags = flags;
        frame.record = event->record.fetch_add(1) + 1;
        event->stream = stream->number;
        event->work = Runtime::get()->progress().submitted() + 1;
    });
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

CUresult cuEventQuery(CUevent handle) {
    Runtime& runtime = *Runtime::get();
    runtime.session().drain();
    Event* event;
    if (const CUresult result = find(handle, &event); result != CUDA_SUCCESS) return result;
    if (event->captured.is_captured) [[unlikely]]
        return graph::refuse_event(event->captured);
    if (is_known_done(*event)) return CUDA_SUCCESS;
    const std::uint32_t record = event->record.load();
    if (event->watched_record.load() >= record) return CUDA_ERROR_NOT_READY;
    event->watched_record = record;
    const Reply reply =
        runtime.session().call<wire::EventQuery>(event->context->number, 0, [&](auto& frame, std::byte*) {
            frame.event = event->number;
            frame.record = record;
        });
    if (reply.status == CUDA_SUCCESS) event->done_record = record;
    return reply.status == CUDA_ERROR_NOT_READY ? reply.status : settle(*event->context, reply.status);
}

CUresult cuEventSynchronize(CUevent handle) {
    Event* event;
    if (const CUresult result = find(handle, &event); result != CUDA_SUCCESS) return result;
    if (event->captured.is_captured) [[unlikely]]
        return graph::refuse_event(event->captured);
    if (is_known_done(*event) && !event->context->prints.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
    const std::uint32_t record = event->record.load();
    const Reply reply = Runtime::get()->session().call<wire::EventSync>(
        event->context->number, 0, [&](auto& frame, std::byte*) { frame.event = event->number; });
    Runtime::get()->output().write();
    if (reply.status == CUDA_SUCCESS) event->done_record = record;
    return settle(*event->context, reply.status);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    Event *start, *end;
    if (const CUresult result = find(start_handle, &start); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find(end_handle, &end); result != CUDA_SUCCESS) return result;
    if (start->captured.is_captured || end->captured.is_captured) return CUDA_ERROR_CAPTURED_EVENT;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || start->record == 0 || end->record == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    const Reply reply =
        Runtime::get()->session().call<wire::EventElapsed>(start->context->number, 0, [&](auto& frame, std::byte*) {
            frame.start = start->number;
            frame.end = end->number;
        });
    if (reply.status == CUDA_SUCCESS && reply.tail.size() >= sizeof(float))
        std::memcpy(milliseconds, reply.tail.data(), sizeof(float));
    return reply.status == CUDA_ERROR_NOT_READY ? reply.status : settle(*start->context, reply.status);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

}  // namespace weft::shim::api
