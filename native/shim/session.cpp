// Locks: append, flush and receive each guard one role of the channel; waiters_mutex_ is taken last and never held
// while sending.
#include "shim/session.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"
#include "shim/driver_log.h"
#include "shim/log.h"
#include "shim/recorder.h"

namespace weft::shim {
namespace {

using transport::Clock;
using transport::Received;
constexpr auto kPatience = std::chrono::milliseconds(100);  // between two looks at the peer's life
// Larger transfers do not stay in the caches anyway.
constexpr std::uint64_t kBulkBytes = 16u << 20;

using wire::header_of;
using wire::text_of;

}  // namespace

Session::Session(std::unique_ptr<transport::Channel> channel, InboundEvents& events, StatsPage* stats,
                 Recorder* recorder, std::string server)
    : channel_(std::move(channel)),
      events_(events),
      stats_(stats),
      recorder_(recorder),
      server_(std::move(server)),
      shared_memory_(channel_->kind() == transport::PathKind::shm) {
    waiters_.reserve(64);
    channel_->set_placer([this](std::span<const std::byte> frame) { return place(frame); });
}

Status Session::start() {
    return helper_.start([this] { return help(); });
}

// ------------------------------------------------------------------------------------------------------------- sending

std::byte* Session::begin(std::size_t size) {
    for (;;) {
        append_mutex_.lock();
        if (lost_.load(std::memory_order_relaxed)) break;
        if (std::byte* at = channel_->reserve(size)) return at;
        append_mutex_.unlock();
        if (!make_room()) return nullptr;
    }
    append_mutex_.unlock();
    return nullptr;
}

void Session::finish(std::byte* at, std::size_t size) {
    if (recorder_ != nullptr) recorder_->frame({at, size}, {});
    channel_->commit(size);
    if (shared_memory_) {
        const Status flushed = channel_->flush();
        append_mutex_.unlock();
        if (!flushed) lose(flushed.text());
        return;
    }
    append_mutex_.unlock();
    publish();
}

// tcp: a committed frame must leave soon. An awake helper sends it within microseconds; a sleeping one would take as
// long as a wake-up, so the caller sends by itself, and wakes the helper when calls come in quick succession.
void Session::publish() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (helper_.is_awake() && !helper_leads_.load(std::memory_order_seq_cst)) return;
    flush();
    const std::int64_t now = Clock::now().time_since_epoch().count();
    const std::int64_t before = last_inline_flush_ns_.exchange(now, std::memory_order_relaxed);
    if (helper_leads_.load(std::memory_order_relaxed)) return;
    if (now - before < 50'000 || channel_->has_unsent()) helper_.poke();
}

void Session::flush() {
    std::lock_guard lock(flush_mutex_);
    if (const Status flushed = channel_->flush(); !flushed) lose(flushed.text());
}

// The way out is full: push, receive (the peer may be waiting for that) and wait a moment. False when the session is
// over.
bool Session::make_room() {
    flush();
    if (is_lost()) return false;
    if (receive_mutex_.try_lock()) {
        bool once = false;
        lead([&once] { return std::exchange(once, true); }, true);
        stop_leading();
    } else {
        follow([] { return false; });
    }
    return !is_lost();
}

CUresult Session::push_payload(const PayloadFrame& frame, const std::function<void()>& placed) {
    return shared_memory_ ? push_through_buffer(frame, placed) : push_directly(frame, placed);
}

CUresult Session::push_through_buffer(const PayloadFrame& frame, const std::function<void()>& placed) {
    transport::Buffer buffer;
    for (;;) {
        {
            std::lock_guard lock(append_mutex_);
            buffer = channel_->acquire_buffer();
        }
        if (buffer) break;
        if (!make_room()) return kLost;
    }
    std::memcpy(buffer.data, frame.payload.data(), frame.payload.size());
    for (;;) {
        std::unique_lock lock(append_mutex_);
        if (is_lost()) return kLost;
        if (channel_->send_buffer(frame.header, buffer, frame.payload.size())) {
            placed();
            if (recorder_ != nullptr) recorder_->frame(frame.header, frame.payload);
            const Status flushed = channel_->flush();
            lock.unlock();
            if (!flushed) lose(flushed.text());
            return CUDA_SUCCESS;
        }
        lock.unlock();
        if (!make_room()) return kLost;
    }
}

CUresult Session::push_directly(const PayloadFrame& frame, const std::function<void()>& placed) {
    std::size_t progress = 0;
    std::lock_guard append_lock(append_mutex_);  // nothing may come between the pieces of one frame
    placed();
    if (recorder_ != nullptr) recorder_->frame(frame.header, frame.payload);
    while (!is_lost()) {
        bool taken;
        {
            std::lock_guard flush_lock(flush_mutex_);
            taken = channel_->send_from(frame.header, frame.payload, &progress);
        }
        if (taken) return CUDA_SUCCESS;
        make_room();
    }
    return kLost;
}

// ----------------------------------------------------------------------------------------------------------- receiving

Session::Waiter::Waiter(Session& owner) : session(owner) {
    std::lock_guard lock(session.waiters_mutex_);
    if (++session.next_request_ == 0) ++session.next_request_;
    request = session.next_request_;
    session.waiters_.push_back(this);
}

Session::Waiter::~Waiter() {
    std::lock_guard lock(session.waiters_mutex_);
    std::erase(session.waiters_, this);
}

Reply Session::wait_for(Waiter& waiter) {
    CallScope::WaitTimer timer;
    if (stats_ != nullptr) stats_->round_trips.fetch_add(1, std::memory_order_relaxed);
    const bool answered = wait_until([&waiter] { return waiter.done.load(std::memory_order_acquire); });
    if (!answered) return Reply{kLost, {}};
    return std::move(waiter.reply);
}

bool Session::wait_until(const std::function<bool()>& condition) {
    if (!shared_memory_) flush();
    while (!condition()) {
        if (is_lost()) return false;
        if (receive_mutex_.try_lock()) {
            lead(condition, false);
            stop_leading();
        } else {
            follow(condition);
        }
    }
    return true;
}

// Receives for everybody until the condition holds. The receive role is held.
bool Session::lead(const std::function<bool()>& condition, bool writable) {
    {
        std::lock_guard lock(waiters_mutex_);
        led_ = true;
    }
    while (!condition() && !is_lost()) {
        if (receive_available()) continue;
        const bool unsent = channel_->has_unsent();
        if (unsent) flush();
        if (const Status alive = channel_->wait(unsent || writable, Clock::now() + kPatience); !alive)
            lose(alive.text());
    }
    return !is_lost();
}

void Session::stop_leading() {
    {
        std::lock_guard lock(waiters_mutex_);
        led_ = false;
    }
    receive_mutex_.unlock();
    if (following_.load() > 0) followers_.notify_all();
    if (expected_.load() > 0) helper_.poke();
    count_traffic();
}

// Another thread receives; sleep until it has what we need or stops.
void Session::follow(const std::function<bool()>& condition) {
    following_.fetch_add(1);
    if (helper_leads_.load()) channel_->notify();
    {
        std::unique_lock lock(waiters_mutex_);
        followers_.wait_for(lock, std::chrono::milliseconds(2), [&] { return !led_ || condition() || is_lost(); });
    }
    following_.fetch_sub(1);
}

void Session::drain() {
    if (is_lost() || !receive_mutex_.try_lock()) return;
    while (receive_available()) {
    }
    receive_mutex_.unlock();
    if (following_.load() > 0) followers_.notify_all();
}

bool Session::receive_available() {
    Result<Received> received = channel_->poll();
    if (!received) {
        lose(received.status().text());
        return false;
    }
    if (!*received) return false;
    handle(*received);
    if (received->buffer) channel_->release_buffer(received->buffer);
    if (following_.load() > 0) {
        {
            std::lock_guard lock(waiters_mutex_);
        }
        followers_.notify_all();
    }
    return true;
}

void Session::handle(const Received& received) {
    const wire::FrameHeader header = header_of(received.frame);
    bool understood = true;
    const auto with = [&]<typename Frame>(auto&& action) {
        auto view = wire::decode<Frame>(received.frame);
        understood = view.is_ok();
        if (understood) action(view->fields, view->tail);
    };
    switch (header.opcode) {
        case wire::Reply::kOpcode: return handle_reply(received);
        case wire::Data::kOpcode: return handle_data(received);
        case wire::Error::kOpcode:
            with.template operator()<wire::Error>([&](const auto& f, auto tail) {
                events_.on_error(header.context, static_cast<CUresult>(f.status), f.sticky != 0, f.failed_opcode,
                                 text_of(tail));
            });
            break;
        case wire::EventDone::kOpcode:
            with.template operator()<wire::EventDone>(
                [&](const auto& f, auto) { events_.on_event_done(f.event, f.record); });
            break;
        case wire::StreamDone::kOpcode:
            with.template operator()<wire::StreamDone>(
                [&](const auto& f, auto) { events_.on_stream_done(f.stream, f.watch); });
            break;
        case wire::FenceDone::kOpcode:
            with.template operator()<wire::FenceDone>([&](const auto& f, auto) { events_.on_fence_done(f.token); });
            break;
        case wire::Credit::kOpcode:
            with.template operator()<wire::Credit>(
                [&](const auto& f, auto) { events_.on_credit(header.context, f.stream, f.frames, f.payload_bytes); });
            break;
        case wire::Pull::kOpcode:
            with.template operator()<wire::Pull>([&](const auto& f, auto) { events_.on_pull(f.pull); });
            break;
        case wire::HostCall::kOpcode:
            with.template operator()<wire::HostCall>(
                [&](const auto& f, auto) { events_.on_host_call(f.call, static_cast<CUresult>(f.status)); });
            break;
        case wire::Output::kOpcode:
            with.template operator()<wire::Output>([&](const auto& f, auto tail) {
                const auto bytes = tail.first(std::min<std::size_t>(tail.size(), f.size_bytes));
                events_.on_output(header.context, f.kind, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            });
            break;
        case wire::Log::kOpcode:
            with.template operator()<wire::Log>([&](const auto& f, auto tail) {
                driver_log().tell(f.level == 0 ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, text_of(tail));
            });
            break;
        case wire::Bye::kOpcode:
            with.template operator()<wire::Bye>([&](const auto&, auto tail) { lose(text_of(tail)); });
            break;
        default: break;  // a newer executor may push what this client does not know
    }
    if (!understood) lose("the server sent a malformed frame");
}

void Session::handle_reply(const Received& received) {
    auto view = wire::decode<wire::Reply>(received.frame);
    if (!view) return lose("the server sent a malformed reply");
    const std::uint32_t request = view->header.request;
    const bool has_payload = (view->header.flags & wire::kFlagPayload) != 0;
    auto tail = has_payload ? std::span<const std::byte>(received.payload) : view->tail;
    tail = tail.first(std::min<std::size_t>(tail.size(), view->fields.tail_bytes));
    std::lock_guard lock(waiters_mutex_);
    for (Waiter* waiter : waiters_) {
        if (waiter->request != request) continue;
        waiter->reply.status = static_cast<CUresult>(view->fields.status);
        waiter->reply.tail.assign(tail.begin(), tail.end());
        waiter->done.store(true, std::memory_order_release);
        return;
    }
}

void* Session::place(std::span<const std::byte> frame) {
    auto view = wire::decode<wire::Data>(frame);
    if (!view) return nullptr;
    return transfers_.place(view->fields.transfer, view->fields.offset, header_of(frame).payload_bytes).data();
}

void Session::handle_data(const Received& received) {
    auto view = wire::decode<wire::Data>(received.frame);
    if (!view) return lose("the server sent malformed data");
    const bool has_payload = (header_of(received.frame).flags & wire::kFlagPayload) != 0;
    const std::span<const std::byte> bytes =
        has_payload ? std::span<const std::byte>(received.payload)
                    : view->tail.first(std::min<std::size_t>(view->tail.size(), view->fields.size_bytes));
    const std::span<std::byte> destination = transfers_.place(view->fields.transfer, view->fields.offset, bytes.size());
    if (destination.data() == nullptr) {
        if (!transfers_.spread(view->fields.transfer, view->fields.offset, bytes)) return;
    } else if (destination.data() != bytes.data()) {
        if (bytes.size() >= kStreamingBytes && transfers_.size_bytes(view->fields.transfer) >= kBulkBytes) {
            copy_streaming(destination.data(), bytes.data(), bytes.size());
        } else {
            std::memcpy(destination.data(), bytes.data(), bytes.size());
        }
    }
    if (transfers_.landed(view->fields.transfer, bytes.size())) expected_arrived();
}

// ------------------------------------------------------------------------------------------------------------ the
// helper

void Session::expect_inbound() {
    expected_.fetch_add(1);
    helper_.poke();
}

void Session::post(std::function<void()> job) {
    {
        std::lock_guard lock(jobs_mutex_);
        jobs_.push_back(std::move(job));
    }
    has_jobs_.store(true);
    helper_.poke();
    if (helper_leads_.load()) channel_->notify();
}

bool Session::help() {
    if (is_lost()) return false;
    bool did = false;
    if (has_jobs_.exchange(false)) {
        std::vector<std::function<void()>> jobs;
        {
            std::lock_guard lock(jobs_mutex_);
            jobs.swap(jobs_);
        }
        for (auto& job : jobs) job();
        did = true;
    }
    if (!shared_memory_ && channel_->has_unsent()) {
        flush();
        did = true;
    }
    const auto wanted = [this] { return expected_.load() > 0 || (!shared_memory_ && channel_->has_unsent()); };
    if (!wanted() || following_.load() > 0 || !receive_mutex_.try_lock()) return did;
    helper_leads_.store(true);
    lead([&] { return following_.load() > 0 || has_jobs_.load() || !wanted(); }, false);
    helper_leads_.store(false);
    stop_leading();
    return true;
}

// --------------------------------------------------------------------------------------------------------------- the
// end

void Session::lose(std::string_view reason) {
    if (lost_.exchange(true)) return;
    log_line("lost the GPU server " + server_ + ": " + std::string(reason));
    channel_->close();
    channel_->notify();
    followers_.notify_all();
}

void Session::abandon_after_fork() {
    lost_.store(true);
    channel_->abandon();
}

void Session::count_traffic() {
    if (stats_ == nullptr) return;
    std::unique_lock lock(counters_mutex_, std::try_to_lock);
    if (!lock) return;
    const transport::Counters now = channel_->counters();
    stats_->frames_sent.fetch_add(now.frames_sent - published_.frames_sent, std::memory_order_relaxed);
    stats_->bytes_sent.fetch_add(now.bytes_sent - published_.bytes_sent, std::memory_order_relaxed);
    stats_->frames_received.fetch_add(now.frames_received - published_.frames_received, std::memory_order_relaxed);
    stats_->bytes_received.fetch_add(now.bytes_received - published_.bytes_received, std::memory_order_relaxed);
    published_ = now;
}

}  // namespace weft::shim
