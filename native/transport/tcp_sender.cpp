#include "transport/tcp_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::transport {

TcpSender::TcpSender(int socket, Mapping ring, Mapping staging, const ChannelOptions& options)
    : socket_(socket),
      ring_(std::move(ring)),
      staging_(std::move(staging)),
      ring_bytes_(options.ring_bytes),
      piece_bytes_(options.piece_bytes),
      writer_(&cursors_, ring_.data(), ring_bytes_),
      lender_(&returned_, options.staging_count) {}

Buffer TcpSender::acquire_buffer() {
    const auto slot = lender_.acquire();
    if (!slot) return {};
    return {staging_.data() + *slot * piece_bytes_, piece_bytes_, *slot};
}

bool TcpSender::send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) {
    std::byte* room = writer_.reserve(frame.size());
    if (room == nullptr) return false;
    std::memcpy(room, frame.data(), frame.size());
    // There are as many places as buffers, so this never overtakes the reader. The frame's commit makes it visible.
    const std::uint64_t tail = attachments_tail_.load(std::memory_order_relaxed);
    attachments_[tail % kMaxSlots] = {writer_.position() + frame.size(), buffer, payload_bytes};
    lender_.lend(buffer.id);
    attachments_tail_.store(tail + 1, std::memory_order_release);
    writer_.commit(frame.size());
    return true;
}

bool TcpSender::send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                          std::size_t* progress_bytes) {
    std::lock_guard guard(write_lock_);
    if (write_queued(writer_.position()) != Write::all) return false;
    const std::size_t total = frame.size() + payload.size();
    while (*progress_bytes < total) {
        iovec parts[2];
        std::size_t count = 0;
        if (*progress_bytes < frame.size()) {
            parts[count++] = {const_cast<std::byte*>(frame.data()) + *progress_bytes, frame.size() - *progress_bytes};
        }
        const std::size_t done = std::max(*progress_bytes, frame.size()) - frame.size();
        parts[count++] = {const_cast<std::byte*>(payload.data()) + done, payload.size() - done};
        const std::size_t sent = write_parts(parts, count);
        *progress_bytes += sent;
        if (sent == 0) break;
    }
    const bool complete = *progress_bytes == total;
    mid_payload_.store(!complete, std::memory_order_relaxed);
    return complete;
}

void TcpSender::flush() {
    std::lock_guard guard(write_lock_);
    // Up to what is there now: an appending thread must not keep us here.
    (void)write_queued(cursors_.tail.load(std::memory_order_acquire));
}

bool TcpSender::has_unsent() const {
    return cursors_.tail.load(std::memory_order_acquire) != cursors_.head.load(std::memory_order_relaxed) ||
           attachments_tail_.load(std::memory_order_acquire) != attachments_head_.load(std::memory_order_relaxed) ||
           mid_payload_.load(std::memory_order_relaxed);
}

TcpSender::Write TcpSender::write_queued(std::uint64_t until) {
    for (;;) {
        std::array<iovec, kMaxParts> parts;
        std::size_t wanted = 0;
        const std::size_t count = gather(parts, until, &wanted);
        if (count == 0) return Write::all;
        const std::size_t sent = write_parts(parts.data(), count);
        if (sent == 0) return Write::blocked;
        advance(sent);
        if (sent < wanted) return Write::some;
    }
}

// The stream from head_ on: ring bytes up to an attachment's position, the attachment, ring bytes, ...
std::size_t TcpSender::gather(std::span<iovec, kMaxParts> parts, std::uint64_t until, std::size_t* total_bytes) const {
    std::uint64_t position = head_;
    std::uint64_t index = attachments_head_.load(std::memory_order_relaxed);
    const std::uint64_t last = attachments_tail_.load(std::memory_order_acquire);
    std::size_t skip = attachment_sent_bytes_;
    std::size_t count = 0;
    while (count + 2 <= kMaxParts) {
        const bool attached = index != last && attachments_[index % kMaxSlots].position <= until;
        const std::uint64_t end = attached ? attachments_[index % kMaxSlots].position : until;
        if (end > position) {
            parts[count++] = {ring_.data() + (position & (ring_bytes_ - 1)), static_cast<std::size_t>(end - position)};
            *total_bytes += end - position;
            position = end;
        }
        if (!attached) break;
        const Attachment& attachment = attachments_[index++ % kMaxSlots];
        parts[count++] = {attachment.buffer.data + skip, attachment.size_bytes - skip};
        *total_bytes += attachment.size_bytes - skip;
        skip = 0;
    }
    return count;
}

void TcpSender::advance(std::size_t sent_bytes) {
    while (sent_bytes > 0) {
        const std::uint64_t index = attachments_head_.load(std::memory_order_relaxed);
        const bool attached = index != attachments_tail_.load(std::memory_order_acquire);
        const Attachment& next = attachments_[index % kMaxSlots];
        if (!attached || next.position != head_) {
            const std::size_t ring_part =
                attached ? std::min<std::size_t>(sent_bytes, next.position - head_) : sent_bytes;
            head_ += ring_part;
            sent_bytes -= ring_part;
            continue;
        }
        const std::size_t part = std::min(sent_bytes, next.size_bytes - attachment_sent_bytes_);
        attachment_sent_bytes_ += part;
        sent_bytes -= part;
        if (attachment_sent_bytes_ < next.size_bytes) break;
        attachment_sent_bytes_ = 0;
        const std::uint64_t bit = slot_bit(next.buffer.id);
        attachments_head_.store(index + 1, std::memory_order_release);
        returned_.fetch_or(bit, std::memory_order_release);
    }
    cursors_.head.store(head_, std::memory_order_release);
}

std::size_t TcpSender::write_parts(iovec* parts, std::size_t count) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    for (;;) {
        const ssize_t sent = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return static_cast<std::size_t>(sent);
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) failure_.store(errno, std::memory_order_relaxed);
        return 0;
    }
}

}  // namespace weft::transport
