// A channel whose other end is in the same thread: frames are pushed in and what the session sends is handed to a sink.
// For replaying recordings, and for tests and fuzzing. Design note: docs/design/executor.md.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "transport/channel.h"

namespace weft::executor {

class MemoryChannel : public transport::Channel {
  public:
    // Takes each frame that the session sends, with its payload.
    using Sink = std::function<void(std::span<const std::byte> frame, std::span<const std::byte> payload)>;
    explicit MemoryChannel(Sink sink, transport::PathKind kind = transport::PathKind::tcp);

    // The next frame for the session; it is copied.
    void push(std::span<const std::byte> frame, std::span<const std::byte> payload = {});
    // The other end is gone: poll fails once everything pushed was taken.
    void hang_up() { hung_up_ = true; }
    std::size_t waiting() const { return frames_.size(); }
    // How many frames and buffers the session may send before there is no room (refilled by allow()).
    void allow(std::size_t frames) { room_ = frames; }
    // As a socket that takes so many bytes and then is full: frames past them stay unsent, payloads are taken in parts.
    void allow_bytes(std::size_t bytes) { byte_room_ = bytes; }
    // Whether the session's last wait() was for room, too.
    bool waited_for_room() const { return waited_for_room_; }
    // Buffers that were lent out and not given back.
    std::size_t lent_buffers() const { return lent_.size(); }
    // Memory that receive_segment will find.
    void offer_segment(std::uint32_t segment, std::size_t size_bytes) { segments_[segment].resize(size_bytes); }
    std::span<std::byte> segment(std::uint32_t number) { return segments_[number]; }

    transport::PathKind kind() const override { return kind_; }
    void set_placer(transport::Placer placer) override { placer_ = std::move(placer); }
    std::byte* reserve(std::size_t size_bytes) override;
    void commit(std::size_t size_bytes) override;
    transport::Buffer acquire_buffer() override;
    void discard_buffer(transport::Buffer buffer) override { lent_.erase(buffer.id); }
    bool send_buffer(std::span<const std::byte> frame, transport::Buffer buffer, std::size_t payload_bytes) override;
    bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                   std::size_t* progress_bytes) override;
    std::size_t payload_piece_bytes() const override { return kPieceBytes; }
    Status flush() override;
    bool has_unsent() const override { return !unsent_.empty(); }
    Result<transport::Received> poll() override;
    void release_buffer(transport::Buffer buffer) override { lent_.erase(buffer.id); }
    Status wait(bool writable, Clock::time_point deadline) override;
    void notify() override;
    Result<std::span<std::byte>> create_segment(std::uint32_t segment, std::size_t size_bytes) override;
    Result<std::span<std::byte>> receive_segment(std::uint32_t segment, std::size_t size_bytes) override;
    void release_segment(std::uint32_t segment) override { segments_.erase(segment); }
    transport::Counters counters() const override { return counters_; }
    void close() override { hung_up_ = true; }
    void abandon() override {}

  private:
    static constexpr std::size_t kPieceBytes = 256u << 10;
    static constexpr std::size_t kMaxLent = 32;
    static constexpr std::size_t kUnlimited = static_cast<std::size_t>(-1);
    struct Pushed {
        std::vector<std::byte> frame, payload;
    };
    transport::Buffer lend();
    // How many of so many bytes go out now.
    std::size_t take_room(std::size_t bytes);
    void deliver(std::span<const std::byte> frame, std::span<const std::byte> payload);

    Sink sink_;
    transport::PathKind kind_;
    transport::Placer placer_;
    std::deque<Pushed> frames_;
    std::vector<std::byte> current_;
    std::vector<std::uint64_t> reserved_;
    std::size_t room_ = kUnlimited, byte_room_ = kUnlimited;
    std::deque<std::vector<std::byte>> unsent_;
    bool waited_for_room_ = false;
    std::uint32_t next_id_ = 1;
    std::map<std::uint32_t, std::vector<std::byte>> lent_;
    std::map<std::uint32_t, std::vector<std::byte>> segments_;
    transport::Counters counters_;
    bool hung_up_ = false;
    std::mutex mutex_;
    std::condition_variable notified_;
    bool is_notified_ = false;
};

}  // namespace weft::executor
