// The loop of a session: frames in, order, completions, frames out. What each frame does is in session_*.cpp.
// See session.h.
#include "executor/session.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "gen/cuda_names.h"

namespace weft::executor {

namespace {

constexpr int kFramesPerTurn = 256;
constexpr std::size_t kMaxLooseFrames = 65536;
constexpr timespec kStalledSleep{0, 200'000};  // while frames may not be taken in
constexpr std::uint32_t kByeProtocol = 1, kByeRefused = 2;

template <typename T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

}  // namespace

std::string_view to_string(EndReason::Kind kind) {
    switch (kind) {
        case EndReason::Kind::none: return "none";
        case EndReason::Kind::goodbye: return "goodbye";
        case EndReason::Kind::client_gone: return "client_gone";
        case EndReason::Kind::protocol: return "protocol";
        case EndReason::Kind::refused: return "refused";
    }
    return "unknown";
}

// A frame that waits for its turn: its bytes are copies of our own.
struct Session::ParkedFrame : Parcel {
    explicit ParkedFrame(std::size_t& session_total) : total(session_total) {}
    ~ParkedFrame() override { total -= charged; }
    // Counts its bytes in the session's total for as long as it lives.
    void charge() { total += charged = frame.size() + payload_bytes + sizeof(ParkedFrame); }

    std::size_t& total;
    std::size_t charged = 0;
    wire::FrameHeader header;
    std::vector<std::byte> frame;
    std::shared_ptr<std::byte> memory;
    std::size_t payload_bytes = 0;
    StreamState* stream = nullptr;
    bool is_answered = false;
};

const Session::Entry* Session::entry_of(std::uint16_t opcode) {
    using S = Session;
    using O = wire::Opcode;
    static const std::array<Entry, wire::kLastOpcode + 1> table = [] {
        std::array<Entry, wire::kLastOpcode + 1> t{};
        const auto set = [&](O op, Run run, When when, bool needs_context) {
            t[static_cast<std::size_t>(op)] = {run, when, needs_context};
        };
        set(O::Hello, &S::on_hello, When::at_once, false);
        set(O::Window, &S::on_window, When::at_once, false);
        set(O::Goodbye, &S::on_goodbye, When::at_once, false);
        set(O::CtxCreate, &S::on_ctx_create, When::at_once, false);
        set(O::CtxDestroy, &S::on_ctx_destroy, When::barrier, true);
        set(O::CtxSync, &S::on_ctx_sync, When::barrier, true);
        set(O::MemMap, &S::on_mem_map, When::map, false);
        set(O::MemUnmap, &S::on_mem_unmap, When::barrier, false);
        set(O::MemNoteAlloc, &S::on_note_alloc, When::at_once, false);
        set(O::MemNoteFree, &S::on_note_free, When::at_once, false);
        set(O::Fence, &S::on_fence, When::barrier, false);
        set(O::SegmentOpen, &S::on_segment_open, When::at_once, false);
        set(O::SegmentClose, &S::on_segment_close, When::barrier, false);
        set(O::CopyH2d, &S::on_copy_h2d, When::in_stream, true);
        set(O::CopyH2dInline, &S::on_copy_h2d_inline, When::in_stream, true);
        set(O::CopyH2dSegment, &S::on_copy_h2d_segment, When::in_stream, true);
        set(O::CopyH2dPull, &S::on_copy_h2d_pull, When::in_stream, true);
        set(O::PullData, &S::on_pull_data, When::at_once, false);
        set(O::CopyD2h, &S::on_copy_d2h, When::in_stream, true);
        set(O::CopyD2hSegment, &S::on_copy_d2h_segment, When::in_stream, true);
        set(O::CopyBoxH2d, &S::on_copy_box_h2d, When::in_stream, true);
        set(O::CopyBoxPull, &S::on_copy_box_pull, When::in_stream, true);
        set(O::CopyBoxD2h, &S::on_copy_box_d2h, When::in_stream, true);
        set(O::CopyBoxSegment, &S::on_copy_box_segment, When::in_stream, true);
        set(O::CopyBoxD2d, &S::on_copy_box_d2d, When::in_stream, true);
        set(O::AddressReserve, &S::on_address_reserve, When::at_once, false);
        set(O::AddressFree, &S::on_address_free, When::barrier, false);
        set(O::PhysicalCreate, &S::on_physical_create, When::barrier, false);
        set(O::PhysicalRelease, &S::on_physical_release, When::barrier, false);
        set(O::PhysicalMap, &S::on_physical_map, When::barrier, false);
        set(O::PhysicalUnmap, &S::on_physical_unmap, When::barrier, false);
        set(O::PhysicalAccess, &S::on_physical_access, When::barrier, false);
        set(O::ArrayCreate, &S::on_array_create, When::barrier, true);
        set(O::ArrayDestroy, &S::on_array_destroy, When::barrier, true);
        set(O::TextureCreate, &S::on_texture_create, When::at_once, true);
        set(O::TextureDestroy, &S::on_texture_destroy, When::barrier, true);
        set(O::ModuleLoad, &S::on_module_load, When::at_once, true);
        set(O::Image, &S::on_image, When::at_once, false);
        set(O::ModuleUnload, &S::on_module_unload, When::barrier, true);
        set(O::Link, &S::on_link, When::at_once, true);
        set(O::Launch, &S::on_launch, When::in_stream, true);
        set(O::GraphCreate, &S::on_graph_create, When::at_once, true);
        set(O::GraphNode, &S::on_graph_node, When::at_once, true);
        set(O::GraphEdges, &S::on_graph_edges, When::at_once, true);
        set(O::GraphInstantiate, &S::on_graph_instantiate, When::at_once, true);
        set(O::GraphUpdate, &S::on_graph_update, When::graph_update, true);
        set(O::GraphLaunch, &S::on_graph_launch, When::graph_launch, true);
        set(O::GraphDestroy, &S::on_graph_destroy, When::barrier, true);
        set(O::HostFunction, &S::on_host_function, When::in_stream, true);
        set(O::HostDone, &S::on_host_done, When::at_once, false);
        set(O::StreamCreate, &S::on_stream_create, When::at_once, true);
        set(O::StreamDestroy, &S::on_stream_destroy, When::in_stream, true);
        set(O::StreamSync, &S::on_stream_sync, When::in_stream, true);
        set(O::StreamQuery, &S::on_stream_query, When::query_stream, true);
        set(O::StreamWaitEvent, &S::on_stream_wait_event, When::wait_event, true);
        set(O::EventCreate, &S::on_event_create, When::at_once, true);
        set(O::EventDestroy, &S::on_event_destroy, When::barrier, true);
        set(O::EventRecord, &S::on_event_record, When::record, true);
        set(O::EventSync, &S::on_event_sync, When::look, true);
        set(O::EventQuery, &S::on_event_query, When::query_event, true);
        set(O::EventElapsed, &S::on_event_elapsed, When::look_two, true);
        for (std::uint16_t op = 0; op <= wire::kLastOpcode; ++op) {
            const wire::FrameInfo* info = wire::find_frame_info(op);
            if (info == nullptr || find_call_runner(op) == nullptr) continue;
            t[op] = {&S::on_call, info->stream_offset >= 0 ? When::in_stream : When::at_once, true};
        }
        return t;
    }();
    return opcode < table.size() && table[opcode].run != nullptr ? &table[opcode] : nullptr;
}

Session::Session(transport::Channel& channel, const driver::DriverTable& driver, SessionOptions options)
    : channel_(channel),
      driver_(driver),
      options_(std::move(options)),
      host_memory_(driver),
      outbox_(channel),
      waker_(std::make_shared<Waker>(&channel)),
      helper_(std::make_unique<Helper>([this] { channel_.notify(); })) {
    channel_.set_placer([this](std::span<const std::byte> frame) { return place(frame); });
}

Session::~Session() {
    channel_.set_placer(nullptr);
    waker_->retire();
    helper_->finish_all();
    if (log_handle_ != nullptr && driver_.cuLogsUnregisterCallback != nullptr)
        driver_.cuLogsUnregisterCallback(log_handle_);
    release_everything();
}

std::uint64_t Session::peak_memory_bytes() const {
    std::uint64_t sum = 0;
    for (const DeviceState& device : devices_) sum += device.account.peak_bytes();
    return sum;
}

// ---------------------------------------------------------------------------------------------------------- the loop

bool Session::turn() {
    bool busy = helper_->run_finished();
    busy |= resume_backlog();
    busy |= receive();
    if (parking_.is_dirty()) busy |= pump_parked();
    if (!copies_out_.empty()) busy |= advance_copies_out();
    if (!completion_.is_idle() || !looked_at_.empty()) {
        const auto now = Clock::now();
        if (waker_->take_hurried()) completion_.backoff().hurry();
        if (completion_.is_due(now)) {
            if (current_ == nullptr) (void)make_any_current();  // drivers may want one to be asked about events
            busy |= look_at_streams(now);
            busy |= completion_.look(now);
        }
    }
    if (completion_.is_idle()) to_wake_.clear();
    if (has_logs_.load(std::memory_order_relaxed)) busy |= push_logs();
    if (!outbox_.is_empty()) busy |= outbox_.drain();
    graveyard_.clear();
    if (outbox_.take_committed() || channel_.has_unsent()) {
        if (Status flushed = channel_.flush(); !flushed) fail(EndReason::Kind::client_gone, flushed.text());
    }
    // What was sent may have made parked frames free to go.
    return busy || parking_.is_dirty();
}

void Session::wait() {
    if (is_over()) return;
    const auto now = Clock::now();
    auto deadline = kNoDeadline;
    if (!completion_.is_idle() || !looked_at_.empty()) {
        if (completion_.backoff().is_spinning(now)) {
            ::sched_yield();
            return;
        }
        arm_wakers();
        deadline = completion_.backoff().next();
    }
    // What was committed but did not fit into the socket has to leave, too: nothing else would wake us for it.
    const bool wants_room = !outbox_.is_empty() || !copies_out_.empty() || channel_.has_unsent();
    const bool is_stalled = !may_receive();
    const Status waited = channel_.wait(wants_room, is_stalled ? now : deadline);
    if (!waited) return fail(EndReason::Kind::client_gone, waited.text());
    // Frames that may not be taken in are readable all the time, so that wait() does not sleep.
    if (is_stalled) ::nanosleep(&kStalledSleep, nullptr);
}

bool Session::may_receive() const {
    if (outbox_.is_congested() || helper_->size() >= kMaxJobs || backlog_bytes_ >= kMaxBacklogBytes) return false;
    // While the client is asked for something, only reading on brings it.
    return parked_bytes_ < kMaxParkedBytes || !pulls_.empty() || !host_calls_.empty();
}

bool Session::receive() {
    for (int i = 0; i < kFramesPerTurn; ++i) {
        if (is_over() || !may_receive()) return i > 0;
        Result<transport::Received> received = channel_.poll();
        if (!received) {
            const bool broken = received.status().code() == ErrorCode::protocol;
            fail(broken ? EndReason::Kind::protocol : EndReason::Kind::client_gone, received.status().text());
            return true;
        }
        if (!*received) return i > 0;
        if (paused_ != 0 || !backlog_.empty()) {
            store(*received);
        } else {
            handle(*received);
        }
    }
    return true;
}

void Session::store(const transport::Received& received) {
    StoredFrame stored;
    stored.frame.assign(received.frame.begin(), received.frame.end());
    stored.payload.assign(received.payload.begin(), received.payload.end());
    if (received.buffer) channel_.release_buffer(received.buffer);
    backlog_bytes_ += stored.frame.size() + stored.payload.size() + sizeof(StoredFrame);
    backlog_.push_back(std::move(stored));
}

bool Session::resume_backlog() {
    bool any = false;
    while (paused_ == 0 && !backlog_.empty() && !is_over()) {
        const StoredFrame stored = std::move(backlog_.front());
        backlog_.pop_front();
        backlog_bytes_ -= stored.frame.size() + stored.payload.size() + sizeof(StoredFrame);
        handle_stored(stored);
        any = true;
    }
    return any;
}

void Session::handle_stored(const StoredFrame& stored) {
    transport::Received received;
    received.frame = stored.frame;
    if (!stored.payload.empty()) {
        (void)make_any_current();
        placed_memory_ = host_memory_.acquire(stored.payload.size());
        if (placed_memory_ == nullptr) return fail(EndReason::Kind::refused, "the executor is out of host memory");
        std::memcpy(placed_memory_.get(), stored.payload.data(), stored.payload.size());
        received.payload = {placed_memory_.get(), stored.payload.size()};
    }
    handle(received);
}

// ------------------------------------------------------------------------------------------------------ one frame

void Session::handle(const transport::Received& received) {
    ++counters_.frames;
    Arrival arrival;
    arrival.frame = received.frame;
    arrival.header = wire::header_of(received.frame);
    arrival.payload = received.payload;
    arrival.buffer = received.buffer;
    if (!received.payload.empty() && !received.buffer) {
        arrival.is_landed = placed_directly_;
        arrival.memory = std::move(placed_memory_);
        placed_directly_ = false;
    }
    const wire::FrameInfo* info = wire::find_frame_info(arrival.header.opcode);
    if (info == nullptr) {
        bad_frame(arrival, "unknown opcode");
    } else if (info->direction != wire::Direction::client_to_executor) {
        bad_frame(arrival, "a frame of the other direction");
    } else if (const Status checked = wire::check_frame(received.frame, *info); !checked) {
        bad_frame(arrival, checked.text());
    } else if (arrival.header.payload_bytes != arrival.payload.size()) {
        bad_frame(arrival, "payload of another size");
    } else {
        accept(arrival, *info);
    }
    if (arrival.buffer) channel_.release_buffer(arrival.buffer);
}

void Session::accept(Arrival& arrival, const wire::FrameInfo& info) {
    const Entry* entry = entry_of(arrival.header.opcode);
    if (entry == nullptr) return void(bad_frame(arrival, "no such call"));
    if (!is_greeted_ && arrival.header.opcode != wire::Hello::kOpcode &&
        arrival.header.opcode != wire::Window::kOpcode && arrival.header.opcode != wire::Goodbye::kOpcode) {
        return void(bad_frame(arrival, "the first frame has to be HELLO"));
    }
    if (entry->needs_context) {
        arrival.context = find_context(arrival.header.context);
        if (arrival.context == nullptr) return refuse_unordered(arrival, info, CUDA_ERROR_INVALID_CONTEXT);
        if (arrival.context->handle == nullptr) return refuse_unordered(arrival, info, arrival.context->creation);
    }
    if (info.stream_offset >= 0) {
        const auto number = read_at<std::uint32_t>(arrival.frame, static_cast<std::size_t>(info.stream_offset));
        arrival.stream = find_stream(*arrival.context, number);
        if (arrival.stream == nullptr) return refuse_unordered(arrival, info, CUDA_ERROR_INVALID_HANDLE);
    }
    submit_or_park(arrival, *entry);
}

// A frame whose context or stream is not known. The stream's credit is given back all the same: the client may still
// wait for it.
void Session::refuse_unordered(const Arrival& arrival, const wire::FrameInfo& info, CUresult status) {
    refuse(arrival, status);
    if (info.stream_offset < 0) return;
    outbox_.send<wire::Credit>(arrival.header.context, 0, {}, [&](wire::Credit& credit) {
        credit.stream = read_at<std::uint32_t>(arrival.frame, static_cast<std::size_t>(info.stream_offset));
        credit.frames = 1;
        credit.payload_bytes = arrival.header.payload_bytes;
    });
}

FrameOrder Session::order_of(const Arrival& arrival, When when) {
    const auto events = [&](std::size_t first, std::size_t second) {
        const auto number = [&](std::size_t offset) {
            return offset == 0 ? kNoEvent
                               : read_at<std::uint32_t>(arrival.frame, sizeof(wire::FrameHeader) + offset - 1);
        };
        return std::array<std::uint32_t, 2>{number(first), number(second)};
    };
    // Offsets count from 1 here: 0 is "none".
    switch (when) {
        case When::record: return {OrderKind::event_record, events(1 + offsetof(wire::EventRecord, event), 0)};
        case When::wait_event: return {OrderKind::event_wait, events(1 + offsetof(wire::StreamWaitEvent, event), 0)};
        case When::look: return {OrderKind::event_look, events(1 + offsetof(wire::EventSync, event), 0)};
        case When::query_event: return {OrderKind::event_look, events(1 + offsetof(wire::EventQuery, event), 0)};
        case When::look_two:
            return {OrderKind::event_look,
                    events(1 + offsetof(wire::EventElapsed, start), 1 + offsetof(wire::EventElapsed, end))};
        case When::graph_update:
        case When::graph_launch: return graph_order(arrival, when);
        case When::barrier:
        case When::map: return {OrderKind::barrier, {kNoEvent, kNoEvent}};
        default: return {};
    }
}

void Session::submit_or_park(Arrival& arrival, const Entry& entry) {
    // Memory is mapped at once unless an unmapping, which may be of the same extent, still waits for its turn.
    if (entry.when == When::at_once || (entry.when == When::map && parked_unmaps_ == 0)) {
        run(arrival, entry);
        return;
    }
    const FrameOrder order = order_of(arrival, entry.when);
    ParkingQueue& queue = arrival.stream != nullptr ? arrival.stream->queue : parking_.loose();
    if (!parking_.must_park(queue, order)) [[likely]] {
        if (run(arrival, entry) == Outcome::started) parking_.park_started(queue, order);
        return;
    }
    if (entry.when == When::query_stream || entry.when == When::query_event) {
        reply(arrival, CUDA_ERROR_NOT_READY);
        arrival.is_answered = true;
    }
    if (arrival.header.opcode == wire::MemUnmap::kOpcode) ++parked_unmaps_;
    park(arrival, queue, order);
}

void Session::park(Arrival& arrival, ParkingQueue& queue, const FrameOrder& order) {
    const std::size_t limit = arrival.stream != nullptr ? kMaxParkedPerStream : kMaxLooseFrames;
    if (queue.size() >= limit)
        return void(bad_frame(arrival, "more frames of a stream than the client has credit for"));
    auto parked = std::make_unique<ParkedFrame>(parked_bytes_);
    parked->header = arrival.header;
    parked->frame.assign(arrival.frame.begin(), arrival.frame.end());
    parked->stream = arrival.stream;
    parked->is_answered = arrival.is_answered;
    parked->payload_bytes = arrival.payload.size();
    parked->memory = std::move(arrival.memory);
    if (parked->memory == nullptr && !arrival.payload.empty()) {
        if (arrival.context != nullptr) set_current(*arrival.context);
        parked->memory = host_memory_.acquire(arrival.payload.size());
        if (parked->memory == nullptr) return fail(EndReason::Kind::refused, "the executor is out of host memory");
        std::memcpy(parked->memory.get(), arrival.payload.data(), arrival.payload.size());
    }
    parked->charge();
    ++counters_.frames_parked;
    parking_.park(queue, order, std::move(parked));
}

bool Session::pump_parked() {
    parking_.pump([this](ParkingQueue& queue, Parcel& parcel) { return run_parked(queue, parcel); });
    return true;
}

Outcome Session::run_parked(ParkingQueue&, Parcel& parcel) {
    auto& parked = static_cast<ParkedFrame&>(parcel);
    Arrival arrival;
    arrival.header = parked.header;
    arrival.frame = parked.frame;
    arrival.memory = std::move(parked.memory);
    arrival.payload = {arrival.memory.get(), parked.payload_bytes};
    arrival.is_answered = parked.is_answered;
    arrival.stream = parked.stream;
    const Entry& entry = *entry_of(arrival.header.opcode);
    if (arrival.header.opcode == wire::MemUnmap::kOpcode) --parked_unmaps_;
    if (arrival.stream != nullptr) {
        arrival.context = &arrival.stream->context;
        // The client went on with a stream that it had destroyed.
        if (arrival.stream->is_dying) {
            if (!arrival.is_answered) refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
            return Outcome::submitted;
        }
    } else if (entry.needs_context) {
        arrival.context = find_context(arrival.header.context);
        if (arrival.context == nullptr) {
            if (!arrival.is_answered) refuse(arrival, CUDA_ERROR_INVALID_CONTEXT);
            return Outcome::submitted;
        }
    }
    return run(arrival, entry);
}

Outcome Session::run(Arrival& arrival, const Entry& entry) {
    const Outcome outcome = (this->*entry.run)(arrival);
    StreamState* stream = arrival.stream;
    if (stream != nullptr && stream->credit.add(arrival.header.payload_bytes)) [[unlikely]]
        push_credit(*stream);
    return outcome;
}

void Session::release(StreamState& stream) {
    // A step of a graph has ended: the launch holds the stream until its last one.
    if (stream.graph_run == nullptr || advance_graph(stream)) parking_.release(stream.queue);
}

void Session::push_credit(StreamState& stream) {
    outbox_.send<wire::Credit>(stream.context.number, 0, {}, [&](wire::Credit& credit) {
        credit.stream = stream.number;
        credit.frames = stream.credit.frames();
        credit.payload_bytes = stream.credit.payload_bytes();
    });
    stream.credit.reset();
}

void* Session::place(std::span<const std::byte> frame) {
    placed_directly_ = false;
    placed_memory_.reset();
    if (frame.size() < sizeof(wire::FrameHeader) || !is_greeted_ || paused_ != 0 || !backlog_.empty()) return nullptr;
    switch (wire::header_of(frame).opcode) {
        case wire::CopyH2d::kOpcode: return place_copy(frame);
        case wire::PullData::kOpcode: return place_pull(frame);
        default: return nullptr;
    }
}

// ---------------------------------------------------------------------------------------------------------- errors

void Session::fail(EndReason::Kind kind, std::string text) {
    if (is_over()) return;
    end_ = {kind, std::move(text)};
    if (kind != EndReason::Kind::protocol && kind != EndReason::Kind::refused) return;
    log_event(LogLevel::warn, "session_refused", {{"session", options_.name}, {"reason", end_.text}});
    const auto text_bytes = std::as_bytes(std::span(end_.text)).first(std::min<std::size_t>(end_.text.size(), 1024));
    outbox_.send<wire::Bye>(0, 0, text_bytes, [&](wire::Bye& bye) {
        bye.code = kind == EndReason::Kind::protocol ? kByeProtocol : kByeRefused;
    });
    outbox_.drain();
    (void)channel_.flush();
}

Outcome Session::bad_frame(const Arrival& arrival, std::string_view what) {
    const wire::FrameInfo* info = wire::find_frame_info(arrival.header.opcode);
    const std::string name =
        info != nullptr ? std::string(info->name) : "opcode " + std::to_string(arrival.header.opcode);
    fail(EndReason::Kind::protocol, "malformed frame (" + name + "): " + std::string(what));
    return Outcome::submitted;
}

void Session::reply(const Arrival& arrival, CUresult status, std::span<const std::byte> tail) {
    if ((arrival.header.flags & wire::kFlagWaiting) != 0) answer(arrival.header, status, tail);
}

// What the driver said about a failure goes first, so that the program can read it when the call returns.
void Session::answer(const wire::FrameHeader& header, CUresult status, std::span<const std::byte> tail) {
    if (status != CUDA_SUCCESS && has_logs_.load()) (void)push_logs();
    outbox_.reply(header.context, header.request, status, tail);
}

void Session::refuse(const Arrival& arrival, CUresult status, std::string_view detail) {
    if ((arrival.header.flags & wire::kFlagWaiting) != 0) {
        completion_.tell_implied();
        return reply(arrival, status);
    }
    ContextState* context = find_context(arrival.header.context);
    if (context != nullptr && driver::is_sticky(status)) return report(*context, status, arrival.header.opcode);
    push_error(arrival.header.context, status, arrival.header.opcode, detail);
}

void Session::report(ContextState& context, CUresult status, std::uint16_t opcode) {
    if (driver::is_sticky(status)) {
        // Everything of this context fails from here on; the client needs to hear it once.
        if (context.is_sticky_reported) return;
        context.is_sticky_reported = true;
    }
    push_error(context.number, status, opcode, {});
}

void Session::push_error(std::uint32_t context, CUresult status, std::uint16_t opcode, std::string_view detail) {
    ++counters_.errors;
    const wire::FrameInfo* info = wire::find_frame_info(opcode);
    const char* name = driver::error_name(status);
    std::string text =
        std::string(info != nullptr ? info->name : "work") + " failed: " + (name != nullptr ? name : "unknown error");
    if (!detail.empty()) text += " (" + std::string(detail) + ")";
    outbox_.send<wire::Error>(context, 0, std::as_bytes(std::span(text)), [&](wire::Error& error) {
        error.status = static_cast<std::int32_t>(status);
        error.failed_opcode = opcode;
        error.sticky = driver::is_sticky(status) ? 1 : 0;
    });
}

bool Session::push_logs() {
    std::vector<std::pair<int, std::string>> lines;
    {
        std::lock_guard lock(log_mutex_);
        lines.swap(logs_);
        has_logs_.store(false);
    }
    for (const auto& [level, text] : lines) {
        outbox_.send<wire::Log>(0, 0, std::as_bytes(std::span(text)),
                                [&](wire::Log& log) { log.level = static_cast<std::uint32_t>(level); });
    }
    return !lines.empty();
}

}  // namespace weft::executor
