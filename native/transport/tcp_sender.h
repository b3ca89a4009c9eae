// The sending half of a tcp channel: frames are appended to a private ring by one thread while another one writes the
// ring to the socket; payloads go between them straight from where they lie. It must not block.
// docs/design/transport.md.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <mutex>
#include <span>

#include "base/mapping.h"
#include "transport/channel.h"
#include "transport/options.h"
#include "transport/ring.h"
#include "transport/slots.h"

namespace weft::transport {

class TcpSender {
  public:
    static constexpr std::size_t kMaxParts = 64;

    // ring: Mapping::ring of options.ring_bytes; staging: staging_count buffers of piece_bytes.
    TcpSender(int socket, Mapping ring, Mapping staging, const ChannelOptions& options);

    // --- append role
    std::byte* reserve(std::size_t size_bytes) { return writer_.reserve(size_bytes); }
    void commit(std::size_t size_bytes) { writer_.commit(size_bytes); }
    Buffer acquire_buffer();
    void discard_buffer(Buffer buffer) { lender_.discard(buffer.id); }
    bool send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes);
    bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload, std::size_t* progress_bytes);

    // --- flush role
    void flush();

    // --- any thread
    bool has_unsent() const;
    // What the append role did not find is there now.
    bool room_came() const { return writer_.room_came() || lender_.slot_came(); }
    // errno of the write that failed, or 0.
    int failure() const { return failure_.load(std::memory_order_relaxed); }

  private:
    // A staged payload; it goes out when the ring has been sent up to `position`.
    struct Attachment {
        std::uint64_t position;
        Buffer buffer;
        std::size_t size_bytes;
    };
    enum class Write { all, some, blocked };

    Write write_queued(std::uint64_t until);
    std::size_t gather(std::span<iovec, kMaxParts> parts, std::uint64_t until, std::size_t* total_bytes) const;
    void advance(std::size_t sent_bytes);
    // Bytes written, 0 if the socket is full or failed.
    std::size_t write_parts(iovec* parts, std::size_t count);

    const int socket_;
    Mapping ring_, staging_;
    const std::size_t ring_bytes_, piece_bytes_;
    RingCursors cursors_;
    std::atomic<std::uint64_t> returned_{0};
    RingWriter writer_;
    SlotLender lender_;
    std::array<Attachment, kMaxSlots> attachments_;
    std::atomic<std::uint64_t> attachments_tail_{0};
    std::atomic<bool> mid_payload_{false};  // send_from has sent a part
    std::atomic<int> failure_{0};

    std::mutex write_lock_;  // the socket's sending direction and all below
    std::uint64_t head_ = 0;
    std::atomic<std::uint64_t> attachments_head_{0};
    std::size_t attachment_sent_bytes_ = 0;
};

}  // namespace weft::transport
