// Streams, events and waiting for them. See session.h.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"
#include "gen/cuda_names.h"

namespace weft::executor {

namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

}  // namespace

// ----------------------------------------------------------------------------------------------- work in the driver

// Ends a group of operations of the stream with a marker, and parks the stream's frames while too many are outstanding.
void Session::mark(StreamState& stream) {
    set_current(stream.context);
    CUresult result = stream.in_flight.place_marker(stream.handle);
    if (const CUresult looked = stream.in_flight.look(); looked != CUDA_SUCCESS) result = looked;
    if (result != CUDA_SUCCESS) report(stream.context, result, 0);
    if (stream.in_flight.is_full()) parking_.set_full(stream.queue, true);
    if (stream.queue.is_full() || stream.in_flight.holds_memory()) look_at(stream);
}

void Session::look_at(StreamState& stream) {
    if (stream.is_looked_at) return;
    stream.is_looked_at = true;
    looked_at_.push_back(&stream);
    completion_.start_looking(Clock::now());
}

bool Session::look_at_streams(Completion::Time now) {
    bool any = false;
    std::vector<StreamState*> have_room;
    for (std::size_t i = 0; i < looked_at_.size();) {
        StreamState& stream = *looked_at_[i];
        const std::uint32_t before = stream.in_flight.outstanding();
        set_current(stream.context);
        if (const CUresult result = stream.in_flight.look(); result != CUDA_SUCCESS) report(stream.context, result, 0);
        any |= stream.in_flight.outstanding() != before;
        if (!stream.in_flight.is_full()) parking_.set_full(stream.queue, false);
        if (!stream.in_flight.is_full() && stream.graph_run != nullptr && stream.graph_run->waits_for_room)
            have_room.push_back(&stream);
        if (stream.queue.is_full() || stream.in_flight.holds_memory() ||
            (stream.is_dying && (stream.in_flight.has_markers() || !stream.queue.is_empty()))) {
            ++i;
            continue;
        }
        stream.is_looked_at = false;
        looked_at_[i] = looked_at_.back();
        looked_at_.pop_back();
        if (stream.is_dying) std::erase_if(dying_, [&](const auto& dying) { return dying.get() == &stream; });
    }
    for (StreamState* stream : have_room) release(*stream);
    if (any) {
        completion_.start_looking(now);
    } else if (completion_.is_idle()) {
        completion_.backoff().looked(now);
    }
    return any;
}

// Somebody waits for what the stream has now.
void Session::wake_at_end_of(StreamState& stream) {
    if (std::find(to_wake_.begin(), to_wake_.end(), &stream) == to_wake_.end()) to_wake_.push_back(&stream);
}

// Somebody has waited for a while: from here the streams tell when they have got to this point.
void Session::arm_wakers() {
    for (StreamState* stream : to_wake_) {
        if (driver_.cuLaunchHostFunc == nullptr) break;
        set_current(stream->context);
        auto* waker = new std::shared_ptr<Waker>(waker_);
        const CUhostFn wake = [](void* data) {
            auto* waker = static_cast<std::shared_ptr<Waker>*>(data);
            (*waker)->hurry();
            delete waker;
        };
        if (driver_.cuLaunchHostFunc(stream->handle, wake, waker) != CUDA_SUCCESS) delete waker;
    }
    to_wake_.clear();
}

CUresult Session::collect_pending(ContextState& context, std::vector<EventRef>* events) {
    if (context.handle == nullptr || context.legacy == nullptr) return context.creation;
    CUresult status = CUDA_SUCCESS;
    const auto collect = [&](StreamState& stream) {
        if (is_stream_idle(stream)) return;
        CUresult error = CUDA_SUCCESS;
        EventRef marker = record_marker(context.events, stream.handle, &error);
        if (marker != nullptr) {
            events->push_back(std::move(marker));
            wake_at_end_of(stream);
        } else {
            status = error;
        }
    };
    set_current(context);
    collect(*context.legacy);
    for (StreamState* stream : context.streams) collect(*stream);
    for (const auto& stream : dying_) {
        if (&stream->context != &context) continue;
        // Its handle is gone; the newest of its markers covers all of it.
        if (EventRef last = stream->in_flight.last_marker()) events->push_back(std::move(last));
    }
    return status;
}

void Session::reply_when(const Arrival& arrival, std::vector<EventRef> events, CUresult status) {
    reply_when(arrival, std::move(events), status,
               [this](const wire::FrameHeader& header) { answer(header, CUDA_SUCCESS); });
}

void Session::reply_when(const Arrival& arrival, std::vector<EventRef> events, CUresult status,
                         std::function<void(const wire::FrameHeader&)> succeed) {
    const auto finish = [this, header = arrival.header, status, context = arrival.context->number,
                         succeed = std::move(succeed)](CUresult waited) {
        const CUresult result = status != CUDA_SUCCESS ? status : waited;
        ContextState* of = find_context(context);
        if (of != nullptr && driver::is_sticky(result)) of->is_sticky_reported = true;
        if (of != nullptr) collect_output(*of);
        if (result != CUDA_SUCCESS) return answer(header, result);
        succeed(header);
    };
    if (events.empty()) {
        completion_.tell_implied();
        return finish(CUDA_SUCCESS);
    }
    completion_.add_wait(std::move(events), finish, Clock::now());
}

void Session::reply_when_stream_is_done(const Arrival& arrival) {
    StreamState& stream = *arrival.stream;
    if (is_stream_idle(stream)) return reply_when(arrival, {}, CUDA_SUCCESS);
    CUresult status = CUDA_SUCCESS;
    EventRef marker = record_marker(stream.context.events, stream.handle, &status);
    if (marker == nullptr) return reply_when(arrival, {}, status);
    wake_at_end_of(stream);
    std::vector<EventRef> events;
    events.push_back(std::move(marker));
    reply_when(arrival, std::move(events), CUDA_SUCCESS);
}

// ------------------------------------------------------------------------------------------------------------ streams

StreamState* Session::find_stream(ContextState& context, std::uint32_t number) {
    if (number == 0) return context.legacy.get();
    StreamState* stream = streams_.find(number);
    return stream != nullptr && &stream->context == &context ? stream : nullptr;
}

Outcome Session::on_stream_create(Arrival& arrival) {
    const auto create = fields_of<wire::StreamCreate>(arrival);
    if (create.stream == 0 || streams_.find(create.stream) != nullptr)
        return bad_frame(arrival, "stream number in use");
    ContextState& context = *arrival.context;
    set_current(context);
    CUstream handle = nullptr;
    const unsigned flags = create.flags & CU_STREAM_NON_BLOCKING;
    const CUresult result = streams_.size() >= kMaxStreams
                                ? CUDA_ERROR_OUT_OF_MEMORY
                                : driver_.cuStreamCreateWithPriority(&handle, flags, create.priority);
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    const auto role = flags != 0 ? ParkingQueue::Role::non_blocking : ParkingQueue::Role::blocking;
    StreamState* stream =
        streams_.insert(create.stream, std::make_unique<StreamState>(context, create.stream, handle, role, &channel_));
    context.streams.push_back(stream);
    return Outcome::submitted;
}

Outcome Session::on_stream_destroy(Arrival& arrival) {
    StreamState& stream = *arrival.stream;
    if (stream.number == 0) return bad_frame(arrival, "the legacy default stream cannot be destroyed");
    set_current(stream.context);
    if (stream.in_flight.unmarked() != 0 || stream.in_flight.holds_memory())
        (void)stream.in_flight.place_marker(stream.handle);
    if (const CUresult result = driver_.cuStreamDestroy_v2(stream.handle); result != CUDA_SUCCESS)
        report(stream.context, result, arrival.header.opcode);
    std::erase(stream.context.streams, &stream);
    std::erase(to_wake_, &stream);
    std::unique_ptr<StreamState> owned = streams_.remove(stream.number);
    parking_.set_full(stream.queue, false);
    stream.is_dying = true;
    // The parking queue is in use until this frame is done, and buffers until the work is.
    if (stream.in_flight.has_markers() || !stream.queue.is_empty()) {
        if (!stream.is_looked_at) look_at(stream);
        dying_.push_back(std::move(owned));
    } else {
        std::erase(looked_at_, &stream);
        graveyard_.push_back(std::move(owned));
    }
    return Outcome::submitted;
}

Outcome Session::on_stream_sync(Arrival& arrival) {
    reply_when_stream_is_done(arrival);
    return Outcome::submitted;
}

Outcome Session::on_stream_query(Arrival& arrival) {
    const auto query = fields_of<wire::StreamQuery>(arrival);
    StreamState& stream = *arrival.stream;
    set_current(stream.context);
    CUresult state = stream.in_flight.outstanding() == 0 ? CUDA_SUCCESS : driver_.cuStreamQuery(stream.handle);
    EventRef marker;
    if (state == CUDA_ERROR_NOT_READY) marker = record_marker(stream.context.events, stream.handle, &state);
    if (marker != nullptr) state = CUDA_ERROR_NOT_READY;
    if (!arrival.is_answered) {
        if (state != CUDA_ERROR_NOT_READY) completion_.tell_implied();
        reply(arrival, state);
        if (state != CUDA_ERROR_NOT_READY) return Outcome::submitted;
    }
    const auto done = [this, context = stream.context.number, number = query.stream,
                       watch = query.watch](CUresult status) {
        if (ContextState* of = find_context(context); of != nullptr && status != CUDA_SUCCESS)
            report(*of, status, wire::StreamQuery::kOpcode);
        outbox_.send<wire::StreamDone>(context, 0, {}, [&](wire::StreamDone& frame) {
            frame.stream = number;
            frame.watch = watch;
        });
    };
    if (marker != nullptr) {
        completion_.add_watch(std::move(marker), done, Clock::now());
    } else {
        completion_.tell_implied();
        done(state);
    }
    return Outcome::submitted;
}

// ------------------------------------------------------------------------------------------------------------- events

Outcome Session::on_event_create(Arrival& arrival) {
    const auto create = fields_of<wire::EventCreate>(arrival);
    if (events_.find(create.event) != nullptr || create.event == kNoEvent)
        return bad_frame(arrival, "event number in use");
    auto event = std::make_unique<EventState>();
    event->context = arrival.context;
    event->number = create.event;
    event->flags = create.flags & kEventFlags;
    const CUresult result = events_.size() >= kMaxEvents ? CUDA_ERROR_OUT_OF_MEMORY : renew_event(*event);
    if (result == CUDA_SUCCESS) {
        events_.insert(create.event, std::move(event));
    } else {
        refuse(arrival, result);
    }
    return Outcome::submitted;
}

// Gives the event a driver event of its own.
CUresult Session::renew_event(EventState& event) {
    set_current(*event.context);
    CUevent handle = nullptr;
    const CUresult result = driver_.cuEventCreate(&handle, event.flags);
    if (result == CUDA_SUCCESS) event.handle = std::make_shared<EventHandle>(handle, false, event.context->events);
    return result;
}

Outcome Session::on_event_destroy(Arrival& arrival) {
    const auto destroy = fields_of<wire::EventDestroy>(arrival);
    if (events_.find(destroy.event) == nullptr) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    set_current(*arrival.context);
    events_.remove(destroy.event);
    return Outcome::submitted;
}

Outcome Session::on_event_record(Arrival& arrival) {
    const auto record = fields_of<wire::EventRecord>(arrival);
    EventState* event = events_.find(record.event);
    // An event is recorded in streams of its own context only, and so ends with it.
    if (event != nullptr && event->context != arrival.context) event = nullptr;
    CUresult result = event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    // Who waits for the last record keeps the driver event of that record.
    if (event != nullptr && event->handle.use_count() > 1) result = renew_event(*event);
    if (result == CUDA_SUCCESS) {
        set_current(*arrival.context);
        result = driver_.cuEventRecord(event->handle->get(), arrival.stream->handle);
    }
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    event->record = record.record;
    event->is_recorded = true;
    submitted(*arrival.stream);
    return Outcome::submitted;
}

Outcome Session::on_stream_wait_event(Arrival& arrival) {
    const auto wait = fields_of<wire::StreamWaitEvent>(arrival);
    EventState* event = events_.find(wait.event);
    if (event != nullptr && !event->is_recorded) return Outcome::submitted;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    if (event != nullptr) {
        set_current(*arrival.context);
        result = driver_.cuStreamWaitEvent(arrival.stream->handle, event->handle->get(), 0);
    }
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
    } else {
        submitted(*arrival.stream);
    }
    return Outcome::submitted;
}

Outcome Session::on_event_sync(Arrival& arrival) {
    const auto sync = fields_of<wire::EventSync>(arrival);
    EventState* event = events_.find(sync.event);
    if (event == nullptr) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    set_current(*event->context);
    const CUresult state = event->is_recorded ? event->handle->query() : CUDA_SUCCESS;
    std::vector<EventRef> events;
    if (state == CUDA_ERROR_NOT_READY) events.push_back(event->handle);
    reply_when(arrival, std::move(events), state == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : state);
    return Outcome::submitted;
}

Outcome Session::on_event_query(Arrival& arrival) {
    const auto query = fields_of<wire::EventQuery>(arrival);
    EventState* event = events_.find(query.event);
    if (event == nullptr) {
        if (!arrival.is_answered) refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    set_current(*event->context);
    const CUresult state = event->is_recorded ? event->handle->query() : CUDA_SUCCESS;
    if (!arrival.is_answered) {
        if (state != CUDA_ERROR_NOT_READY) completion_.tell_implied();
        reply(arrival, state);
        if (state != CUDA_ERROR_NOT_READY) return Outcome::submitted;
    }
    const auto done = [this, context = event->context->number, number = query.event,
                       record = event->record](CUresult status) {
        if (ContextState* of = find_context(context); of != nullptr && status != CUDA_SUCCESS)
            report(*of, status, wire::EventQuery::kOpcode);
        outbox_.send<wire::EventDone>(context, 0, {}, [&](wire::EventDone& frame) {
            frame.event = number;
            frame.record = record;
        });
    };
    if (state == CUDA_ERROR_NOT_READY) {
        completion_.add_watch(event->handle, done, Clock::now());
    } else {
        completion_.tell_implied();
        done(state);
    }
    return Outcome::submitted;
}

Outcome Session::on_event_elapsed(Arrival& arrival) {
    const auto elapsed = fields_of<wire::EventElapsed>(arrival);
    EventState* start = events_.find(elapsed.start);
    EventState* end = events_.find(elapsed.end);
    float milliseconds = 0;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    if (start != nullptr && end != nullptr) {
        set_current(*start->context);
        result = driver_.cuEventElapsedTime(&milliseconds, start->handle->get(), end->handle->get());
    }
    completion_.tell_implied();
    reply(arrival, result, bytes_of(milliseconds));
    return Outcome::submitted;
}

}  // namespace weft::executor
