// One full-duplex, ordered stream of frames between a client process and its executor, over shm, tcp or (later) rdma.
//
// A Channel owns no thread. Three roles act on it, each by at most one thread at a time (the user holds a lock per
// role):
//   append   reserve / commit / acquire_buffer / discard_buffer / send_buffer / send_from / create_segment
//   flush    flush
//   receive  poll / wait / receive_segment
// Anyone may call notify, release_buffer, release_segment, has_unsent, counters and close. On shm `commit` already
// publishes and flush only wakes a sleeping peer; on tcp `commit` appends to a buffer and flush writes to the socket
// without blocking. Neither end ever waits to send without also receiving. Design note: docs/design/transport.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "wire/frame.h"

namespace weft::transport {

using Clock = weft::Clock;

// A payload buffer of the channel: a slot of the shared segment (shm) or a staging buffer from a bounded pool (tcp).
struct Buffer {
    std::byte* data = nullptr;
    std::size_t capacity_bytes = 0;
    std::uint32_t id = 0;
    explicit operator bool() const { return data != nullptr; }
};

// One received frame. `frame` is a private copy (header + arguments) valid until the next poll. `payload` is empty
// without kFlagPayload. If `buffer` is set the payload lies in it and it must be given back with release_buffer (any
// time, any order); else the payload lies where the Placer said.
struct Received {
    std::span<const std::byte> frame;
    std::span<std::byte> payload;
    Buffer buffer;
    explicit operator bool() const { return !frame.empty(); }
};

// Asked (tcp only) when the header and arguments of a frame with payload have arrived: where shall the payload land?
// nullptr: in a staging buffer of the channel. The memory must hold payload_bytes and stay valid until poll returns the
// frame. Asked once per frame, within poll or wait.
using Placer = std::function<void*(std::span<const std::byte> frame)>;

enum class PathKind { shm, tcp };
std::string_view to_string(PathKind kind);

struct Counters {
    std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0, bytes_received = 0;
};

class Channel {
  public:
    virtual ~Channel() = default;
    virtual PathKind kind() const = 0;
    virtual void set_placer(Placer placer) = 0;

    // --- append role -------------------------------------------------------------------------------------------------
    // Room for one frame of size_bytes (a multiple of 8, at most kMaxFrameBytes), or nullptr if there is none just now:
    // flush, poll, wait for writable, try again.
    virtual std::byte* reserve(std::size_t size_bytes) = 0;
    // The reserved frame is complete. It may be shorter than reserved.
    virtual void commit(std::size_t size_bytes) = 0;
    // A buffer for an outgoing payload, or an empty one if none is free just now.
    virtual Buffer acquire_buffer() = 0;
    // Gives an acquired buffer back that shall not be sent.
    virtual void discard_buffer(Buffer buffer) = 0;
    // Appends the frame (payload_bytes and kFlagPayload set by the caller) with the filled buffer as payload; the
    // channel owns the buffer from here. False if there is no room just now (nothing was taken).
    virtual bool send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) = 0;
    // As send_buffer, from memory of the caller. True: the bytes were taken (copied or handed to the kernel in full);
    // false: no room just now. The payload is at most payload_piece_bytes() long. On tcp this writes straight from
    // `payload` where it can: partial progress is kept in `*progress_bytes` (start with 0, call again with the same
    // arguments until true; nothing else may be appended in between).
    virtual bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                           std::size_t* progress_bytes) = 0;
    // Largest payload that makes sense per frame on this path (<= kMaxPayloadBytes).
    virtual std::size_t payload_piece_bytes() const = 0;

    // --- flush role --------------------------------------------------------------------------------------------------
    // Pushes what was committed towards the peer, without blocking. unavailable when the peer is gone.
    virtual Status flush() = 0;
    // True while committed bytes have not left this process.
    virtual bool has_unsent() const = 0;

    // --- receive role ------------------------------------------------------------------------------------------------
    // The next complete frame, or an empty one if none is here. Error: peer gone (unavailable) or wire rules broken
    // (protocol).
    virtual Result<Received> poll() = 0;
    virtual void release_buffer(Buffer buffer) = 0;  // any thread

    // Spins briefly, then sleeps until a frame may be readable, `writable` is wanted and room may be there (for what
    // the append role did not get last, or for unsent bytes), notify() was called, or the deadline passes. Returns
    // unavailable when the peer is dead (closed, or silent past the liveness time-out) and all its frames were polled.
    // A thread that needs room while another one sleeps in wait(false, ...) notifies it, to wait for room instead.
    virtual Status wait(bool writable, Clock::time_point deadline) = 0;
    virtual void notify() = 0;  // any thread; wakes a wait() in progress or makes the next one return at once

    // Shared host memory (shm only; unsupported elsewhere). The client makes a sealed memfd of size_bytes and passes it
    // with `segment` as its number; the executor maps it when it handles the frame that announces the number.
    virtual Result<std::span<std::byte>> create_segment(std::uint32_t segment, std::size_t size_bytes) = 0;
    virtual Result<std::span<std::byte>> receive_segment(std::uint32_t segment, std::size_t size_bytes) = 0;
    // Unmaps a segment on this end; the other end keeps its own mapping. Unknown numbers are ignored.
    virtual void release_segment(std::uint32_t segment) = 0;

    virtual Counters counters() const = 0;
    virtual void close() = 0;  // idempotent; the peer sees unavailable
    // Closes descriptors without telling the peer (a forked child lets go of its parent's session).
    virtual void abandon() = 0;
};

}  // namespace weft::transport
