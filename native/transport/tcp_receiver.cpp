#include "transport/tcp_receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::transport {

namespace {

constexpr std::size_t kBulkLookAheadBytes = 512;  // the next frame's header and arguments, usually
constexpr std::size_t kBulkPayloadBytes = 16 * 1024;

}  // namespace

TcpReceiver::TcpReceiver(int socket, Mapping buffer, Mapping staging, const ChannelOptions& options)
    : socket_(socket),
      piece_bytes_(options.piece_bytes),
      buffer_(std::move(buffer)),
      staging_(std::move(staging)),
      free_(all_slots(options.staging_count)),
      staging_count_(options.staging_count) {}

void TcpReceiver::drop_taken() {
    if (!taken_) return;
    taken_ = complete_ = false;
    frame_bytes_ = 0;
    begin_ = next_;
    payload_ = nullptr;
    payload_bytes_ = payload_got_bytes_ = 0;
    payload_buffer_ = {};
    placer_asked_ = false;
    // Frames start aligned; only a payload of odd length, read ahead, leaves the next one elsewhere.
    if (begin_ == end_ || begin_ % 8 != 0) move_to_front();
}

void TcpReceiver::move_to_front() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    next_ = begin_ = 0;
}

TcpReceiver::State TcpReceiver::advance() {
    if (complete_) return State::frame;
    if (broken_reason_ != nullptr) return State::broken;
    if (frame_bytes_ == 0) {
        if (State state = read_frame(); state != State::frame) return state;
        const auto* header = reinterpret_cast<const wire::FrameHeader*>(frame().data());
        bulk_ = header->payload_bytes >= kBulkPayloadBytes;
        if (payload_bytes_ == 0) {
            complete_ = true;
            return State::frame;
        }
    }
    if (payload_ == nullptr) {
        if (State state = begin_payload(); state != State::frame) return state;
    }
    return read_payload();
}

// A complete, checked header with its arguments at begin_, or why not.
TcpReceiver::State TcpReceiver::read_frame() {
    for (;;) {
        const std::size_t here = end_ - begin_;
        std::size_t needed = sizeof(wire::FrameHeader);
        if (here >= needed) {
            const auto* header = reinterpret_cast<const wire::FrameHeader*>(buffer_.data() + begin_);
            needed = header->size_bytes;
            if (needed < sizeof *header || needed > wire::kMaxFrameBytes || needed % 8 != 0) {
                return break_off("frame size out of range");
            }
            const bool has_payload = (header->flags & wire::kFlagPayload) != 0;
            if (has_payload == (header->payload_bytes == 0) || header->payload_bytes > wire::kMaxPayloadBytes) {
                return break_off("payload length out of range");
            }
            if (here >= needed) {
                frame_bytes_ = needed;
                next_ = begin_ + needed;
                payload_bytes_ = header->payload_bytes;
                return State::frame;
            }
        }
        // Only the beginning of a frame is here, so this moves little.
        if (kBufferBytes - begin_ < wire::kMaxFrameBytes + kBulkLookAheadBytes || kBufferBytes == end_) move_to_front();
        State state = State::nothing;
        const std::size_t room = kBufferBytes - end_;
        iovec part{buffer_.data() + end_, bulk_ ? std::min(room, std::max(needed - here, kBulkLookAheadBytes)) : room};
        const std::size_t got = read_parts(&part, 1, &state);
        if (got == 0) return state;
        end_ += got;
    }
}

// Chooses where the payload lands and moves there what was read ahead of it.
TcpReceiver::State TcpReceiver::begin_payload() {
    if (placer_ && !std::exchange(placer_asked_, true)) payload_ = static_cast<std::byte*>(placer_(frame()));
    if (payload_ == nullptr) {
        if (payload_bytes_ > piece_bytes_) return break_off("payload longer than a piece");
        stalled_.store(true, std::memory_order_seq_cst);
        const std::uint64_t free = free_.load(std::memory_order_seq_cst);
        if (free == 0) return State::stalled;
        stalled_.store(false, std::memory_order_relaxed);
        const auto id = static_cast<std::uint32_t>(std::countr_zero(free));
        free_.fetch_and(~slot_bit(id), std::memory_order_acquire);
        payload_buffer_ = {staging_.data() + id * piece_bytes_, piece_bytes_, id};
        payload_ = payload_buffer_.data;
    }
    payload_got_bytes_ = std::min(end_ - next_, payload_bytes_);
    std::memcpy(payload_, buffer_.data() + next_, payload_got_bytes_);
    next_ += payload_got_bytes_;
    if (payload_got_bytes_ < payload_bytes_) end_ = next_ = begin_ + frame_bytes_;
    return State::frame;
}

TcpReceiver::State TcpReceiver::read_payload() {
    while (payload_got_bytes_ < payload_bytes_) {
        const std::size_t left = payload_bytes_ - payload_got_bytes_;
        iovec parts[2] = {{payload_ + payload_got_bytes_, left},
                          {buffer_.data() + end_, std::min(kBufferBytes - end_, kBulkLookAheadBytes)}};
        State state = State::nothing;
        const std::size_t got = read_parts(parts, 2, &state);
        if (got == 0) return state;
        payload_got_bytes_ += std::min(got, left);
        end_ += got - std::min(got, left);
    }
    complete_ = true;
    return State::frame;
}

std::size_t TcpReceiver::read_parts(iovec* parts, std::size_t count, State* state) {
    *state = State::ended;
    if (ended_) return 0;
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    ssize_t got;
    do {
        got = ::recvmsg(socket_, &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        *state = State::nothing;
        return 0;
    }
    ended_ = true;
    failure_ = got < 0 ? errno : 0;
    return 0;
}

Received TcpReceiver::take() {
    taken_ = true;
    Received received;
    received.frame = frame();
    if (payload_bytes_ > 0) received.payload = {payload_, payload_bytes_};
    received.buffer = payload_buffer_;
    return received;
}

bool TcpReceiver::give_back(Buffer buffer) {
    if (buffer.id >= staging_count_) return false;
    free_.fetch_or(slot_bit(buffer.id), std::memory_order_seq_cst);
    return stalled_.load(std::memory_order_seq_cst);
}

TcpReceiver::State TcpReceiver::break_off(const char* reason) {
    broken_reason_ = reason;
    return State::broken;
}

}  // namespace weft::transport
