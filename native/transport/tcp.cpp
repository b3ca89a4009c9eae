#include "transport/tcp.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "transport/factory.h"

namespace weft::transport {

namespace {

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

Status check_options(const ChannelOptions& options) {
    const bool valid = std::has_single_bit(options.ring_bytes) && options.ring_bytes >= 2 * wire::kMaxFrameBytes &&
                       options.ring_bytes <= (16u << 20) && options.staging_count >= 1 &&
                       options.staging_count <= kMaxSlots && options.piece_bytes >= 4096 &&
                       options.piece_bytes <= wire::kMaxPayloadBytes && options.piece_bytes % 4096 == 0;
    if (!valid) return Status::error(ErrorCode::invalid_argument, "sizes of the tcp channel are out of range");
    return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Channel>> open_tcp(UniqueFd connected_socket, ChannelOptions options) {
    if (Status status = check_options(options); !status) return status;
    auto file = make_memory_file("weft-tcp-ring", options.ring_bytes, false);
    if (!file) return file.take_status();
    auto ring = Mapping::ring(file->get(), 0, options.ring_bytes);
    if (!ring) return ring.take_status();
    auto sending = Mapping::anonymous(options.staging_count * options.piece_bytes);
    if (!sending) return sending.take_status();
    auto receiving = Mapping::anonymous(options.staging_count * options.piece_bytes);
    if (!receiving) return receiving.take_status();
    auto buffer = Mapping::anonymous(TcpReceiver::kBufferBytes);
    if (!buffer) return buffer.take_status();
    auto event = Notifier::make_event();
    if (!event) return event.take_status();
    TcpChannel::Parts parts{std::move(*ring), std::move(*sending), std::move(*receiving), std::move(*buffer),
                            std::move(*event)};
    auto channel = std::make_unique<TcpChannel>(std::move(connected_socket), std::move(parts), options);
    if (Status status = channel->set_up(); !status) return status;
    return std::unique_ptr<Channel>(std::move(channel));
}

TcpChannel::TcpChannel(UniqueFd socket, Parts parts, const ChannelOptions& options)
    : socket_(std::move(socket)),
      piece_bytes_(options.piece_bytes),
      liveness_timeout_(options.liveness_timeout),
      notifier_(std::move(parts.event)),
      spinner_(options.spin_time),
      sender_(socket_.get(), std::move(parts.ring), std::move(parts.sending), options),
      receiver_(socket_.get(), std::move(parts.buffer), std::move(parts.receiving), options),
      liveness_(socket_.get(), options.liveness_timeout) {}

// --- append role -----------------------------------------------------------------------------------------------------

void TcpChannel::commit(std::size_t size_bytes) {
    add(frames_sent_, 1);
    add(bytes_sent_, size_bytes);
    sender_.commit(size_bytes);
}

bool TcpChannel::send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) {
    if (!sender_.send_buffer(frame, buffer, payload_bytes)) return false;
    add(frames_sent_, 1);
    add(bytes_sent_, frame.size() + payload_bytes);
    return true;
}

bool TcpChannel::send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                           std::size_t* progress_bytes) {
    if (closed_.load(std::memory_order_relaxed)) return false;
    if (!sender_.send_from(frame, payload, progress_bytes)) return false;
    add(frames_sent_, 1);
    add(bytes_sent_, frame.size() + payload.size());
    return true;
}

// --- flush role ------------------------------------------------------------------------------------------------------

Status TcpChannel::flush() {
    // After abandon the number of our descriptor may be somebody else's.
    if (closed_.load(std::memory_order_relaxed)) return end_status();
    if (sender_.has_unsent()) sender_.flush();
    return end_status();
}

// --- receive role ----------------------------------------------------------------------------------------------------

Result<Received> TcpChannel::poll() {
    if (closed_.load(std::memory_order_relaxed)) return end_status();
    receiver_.drop_taken();
    state_ = receiver_.advance();
    switch (state_) {
        case TcpReceiver::State::frame: break;
        case TcpReceiver::State::nothing:
        case TcpReceiver::State::stalled:
            if (Status status = end_status(); !status) return status;
            return Received{};
        case TcpReceiver::State::ended: ended_.store(true, std::memory_order_relaxed); return end_status();
        case TcpReceiver::State::broken: return Status::error(ErrorCode::protocol, receiver_.broken_reason());
    }
    Received received = receiver_.take();
    add(frames_received_, 1);
    add(bytes_received_, received.frame.size() + received.payload.size());
    return received;
}

void TcpChannel::release_buffer(Buffer buffer) {
    if (receiver_.give_back(buffer)) notifier_.notify();
}

// Something for the caller to do. An ended or broken stream counts: poll tells it, after the frames before it.
bool TcpChannel::ready(bool writable) {
    if (receiver_.holds_taken() || notifier_.pending()) return true;
    state_ = receiver_.advance();
    if (state_ != TcpReceiver::State::nothing && state_ != TcpReceiver::State::stalled) return true;
    if (!writable) return false;
    return sender_.room_came() || (sender_.has_unsent() && socket_takes_more());
}

bool TcpChannel::socket_takes_more() const {
    pollfd look{socket_.get(), POLLOUT, 0};
    return ::poll(&look, 1, 0) > 0;
}

Status TcpChannel::wait(bool writable, Clock::time_point deadline) {
    for (;;) {
        if (closed_.load(std::memory_order_relaxed)) return end_status();
        const auto start = Clock::now();
        if (ready(writable) || spinner_.spin([&] { return ready(writable); }, deadline)) break;
        if (Status status = end_status(); !status) return status;
        const auto now = Clock::now();
        if (Status status = check_peer(now); !status) return status;
        if (now >= deadline) break;
        if (Status status = sleep(writable, deadline); !status) return status;
        spinner_.learn(Clock::now() - start);
    }
    notifier_.consume();
    if (state_ == TcpReceiver::State::ended) {
        ended_.store(true, std::memory_order_relaxed);
        return end_status();
    }
    if (state_ == TcpReceiver::State::broken) return Status::error(ErrorCode::protocol, receiver_.broken_reason());
    return Status::ok();
}

Status TcpChannel::sleep(bool writable, Clock::time_point deadline) {
    const auto now = Clock::now();
    if (liveness_.look(now)) dead_.store(true, std::memory_order_relaxed);
    if (Status status = end_status(); !status) return status;
    // Nothing owed and nothing to send: the kernel's keep-alive wakes us if the peer goes, no timer is needed.
    const bool watched = liveness_.data_queued() || sender_.has_unsent();
    const auto until = watched ? std::min(deadline, liveness_.next_look()) : deadline;
    const short reading = state_ == TcpReceiver::State::stalled ? 0 : POLLIN;
    const short writing = writable && sender_.has_unsent() ? POLLOUT : 0;
    pollfd looks[2] = {{socket_.get(), static_cast<short>(reading | writing), 0}, {notifier_.fd(), POLLIN, 0}};
    notifier_.begin_sleep();
    if (!notifier_.pending()) {
        PollTimeout timeout(until);
        ::ppoll(looks, 2, timeout.get(), nullptr);
    }
    notifier_.end_sleep(looks[1].revents != 0);
    return Status::ok();
}

Status TcpChannel::check_peer(Clock::time_point now) {
    if (liveness_.peer_is_dead(now)) dead_.store(true, std::memory_order_relaxed);
    return end_status();
}

Status TcpChannel::end_status() const {
    if (closed_.load(std::memory_order_relaxed)) return Status::error(ErrorCode::unavailable, "the channel is closed");
    if (dead_.load(std::memory_order_relaxed)) {
        return Status::error(ErrorCode::unavailable,
                             "the peer has not answered for " + std::to_string(liveness_timeout_.count()) + " ms");
    }
    const int failure = ended_.load(std::memory_order_relaxed) ? receiver_.failure() : sender_.failure();
    if (failure != 0) {
        char text[128];
        return Status::error(ErrorCode::unavailable,
                             std::string("connection lost: ") + ::strerror_r(failure, text, sizeof text));
    }
    if (ended_.load(std::memory_order_relaxed)) {
        return Status::error(ErrorCode::unavailable, "the peer closed the connection or died");
    }
    return Status::ok();
}

// --- the rest --------------------------------------------------------------------------------------------------------

Result<std::span<std::byte>> TcpChannel::create_segment(std::uint32_t, std::size_t) {
    return Status::error(ErrorCode::unsupported, "tcp has no shared segments");
}

Result<std::span<std::byte>> TcpChannel::receive_segment(std::uint32_t, std::size_t) {
    return Status::error(ErrorCode::unsupported, "tcp has no shared segments");
}

Counters TcpChannel::counters() const {
    return {frames_sent_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            frames_received_.load(std::memory_order_relaxed), bytes_received_.load(std::memory_order_relaxed)};
}

void TcpChannel::close() {
    if (closed_.exchange(true, std::memory_order_relaxed)) return;
    if (sender_.has_unsent()) sender_.flush();
    if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
    notifier_.notify();
}

void TcpChannel::abandon() {
    closed_.store(true, std::memory_order_relaxed);
    socket_.reset();
    notifier_.abandon();
}

}  // namespace weft::transport
