// The receiving half of a tcp channel: cuts the byte stream into frames, and lets payloads land where they are wanted.
// Everything is of the receive role except give_back. It must not block and must not read more than its buffer and the
// announced payload hold. docs/design/transport.md.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <span>

#include "base/mapping.h"
#include "transport/channel.h"
#include "transport/options.h"
#include "transport/slots.h"

namespace weft::transport {

class TcpReceiver {
  public:
    static constexpr std::size_t kBufferBytes = 4 * wire::kMaxFrameBytes;

    enum class State {
        frame,    // take() has one
        nothing,  // the socket gave no more
        stalled,  // no staging buffer is free
        ended,    // the peer closed, or the socket failed
        broken,   // the peer broke the rules
    };

    TcpReceiver(int socket, Mapping buffer, Mapping staging, const ChannelOptions& options);

    void set_placer(Placer placer) { placer_ = std::move(placer); }
    // Ends the life of the frame that was taken before.
    void drop_taken();
    // Reads what is there until a frame is complete. Needs drop_taken after a take.
    State advance();
    // The frame that advance() completed.
    Received take();
    bool holds_taken() const { return taken_; }
    // Any thread. True when the receiver waited for one.
    bool give_back(Buffer buffer);

    const char* broken_reason() const { return broken_reason_; }
    // errno of the read that failed; 0: the peer closed in order.
    int failure() const { return failure_; }

  private:
    State read_frame();
    State begin_payload();
    State read_payload();
    State break_off(const char* reason);
    // Bytes read; 0 and *state when there are none.
    std::size_t read_parts(iovec* parts, std::size_t count, State* state);
    void move_to_front();
    std::span<const std::byte> frame() const { return {buffer_.data() + begin_, frame_bytes_}; }

    const int socket_;
    const std::size_t piece_bytes_;
    Placer placer_;
    Mapping buffer_;
    // buffer_[begin_, end_): first the frame of frame_bytes_ if that is not 0; what follows starts at next_.
    std::size_t begin_ = 0, end_ = 0, next_ = 0;
    std::size_t frame_bytes_ = 0;
    bool complete_ = false, taken_ = false, placer_asked_ = false;
    bool bulk_ = false;  // payloads come in: read little past each, or the next payload would be copied once more

    std::byte* payload_ = nullptr;
    std::size_t payload_bytes_ = 0, payload_got_bytes_ = 0;
    Buffer payload_buffer_;

    Mapping staging_;
    std::atomic<std::uint64_t> free_;
    std::atomic<bool> stalled_{false};
    std::uint32_t staging_count_;

    const char* broken_reason_ = nullptr;
    bool ended_ = false;
    int failure_ = 0;
};

}  // namespace weft::transport
