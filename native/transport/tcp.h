// A channel over one TCP connection. It joins the two halves and waits; it must not hold a thread or a timer of its
// own. docs/design/transport.md.
#pragma once

#include <atomic>
#include <memory>

#include "base/fd.h"
#include "transport/channel.h"
#include "transport/options.h"
#include "transport/tcp_liveness.h"
#include "transport/tcp_receiver.h"
#include "transport/tcp_sender.h"
#include "transport/waiting.h"

namespace weft::transport {

class TcpChannel final : public Channel {
  public:
    struct Parts {
        Mapping ring, sending, receiving, buffer;
        UniqueFd event;
    };
    TcpChannel(UniqueFd socket, Parts parts, const ChannelOptions& options);
    Status set_up() { return liveness_.set_up(); }

    PathKind kind() const override { return PathKind::tcp; }
    void set_placer(Placer placer) override { receiver_.set_placer(std::move(placer)); }

    std::byte* reserve(std::size_t size_bytes) override { return sender_.reserve(size_bytes); }
    void commit(std::size_t size_bytes) override;
    Buffer acquire_buffer() override { return sender_.acquire_buffer(); }
    void discard_buffer(Buffer buffer) override { sender_.discard_buffer(buffer); }
    bool send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) override;
    bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                   std::size_t* progress_bytes) override;
    std::size_t payload_piece_bytes() const override { return piece_bytes_; }

    Status flush() override;
    bool has_unsent() const override { return sender_.has_unsent(); }

    Result<Received> poll() override;
    void release_buffer(Buffer buffer) override;
    Status wait(bool writable, Clock::time_point deadline) override;
    void notify() override { notifier_.notify(); }

    Result<std::span<std::byte>> create_segment(std::uint32_t segment, std::size_t size_bytes) override;
    Result<std::span<std::byte>> receive_segment(std::uint32_t segment, std::size_t size_bytes) override;
    void release_segment(std::uint32_t) override {}

    Counters counters() const override;
    void close() override;
    void abandon() override;

  private:
    bool ready(bool writable);
    bool socket_takes_more() const;
    Status sleep(bool writable, Clock::time_point deadline);
    Status end_status() const;
    Status check_peer(Clock::time_point now);

    UniqueFd socket_;
    const std::size_t piece_bytes_;
    const std::chrono::milliseconds liveness_timeout_;
    Notifier notifier_;
    Spinner spinner_;
    TcpSender sender_;
    TcpReceiver receiver_;
    TcpReceiver::State state_ = TcpReceiver::State::nothing;  // of the last advance
    TcpLiveness liveness_;
    std::atomic<bool> dead_{false};
    std::atomic<bool> ended_{false};
    std::atomic<bool> closed_{false};
    std::atomic<std::uint64_t> frames_sent_{0}, bytes_sent_{0}, frames_received_{0}, bytes_received_{0};
};

}  // namespace weft::transport
