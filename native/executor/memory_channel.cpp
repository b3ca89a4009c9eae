// See memory_channel.h.
#include "executor/memory_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/codec.h"

namespace weft::executor {

MemoryChannel::MemoryChannel(Sink sink, transport::PathKind kind)
    : sink_(std::move(sink)), kind_(kind), reserved_(wire::kMaxFrameBytes / sizeof(std::uint64_t)) {}

void MemoryChannel::push(std::span<const std::byte> frame, std::span<const std::byte> payload) {
    frames_.push_back({{frame.begin(), frame.end()}, {payload.begin(), payload.end()}});
}

std::byte* MemoryChannel::reserve(std::size_t size_bytes) {
    return room_ != 0 && size_bytes <= wire::kMaxFrameBytes ? reinterpret_cast<std::byte*>(reserved_.data()) : nullptr;
}

void MemoryChannel::commit(std::size_t size_bytes) {
    const std::span frame(reinterpret_cast<std::byte*>(reserved_.data()), size_bytes);
    if (byte_room_ == kUnlimited && unsent_.empty()) return deliver(frame, {});
    unsent_.emplace_back(frame.begin(), frame.end());
}

std::size_t MemoryChannel::take_room(std::size_t bytes) {
    const std::size_t taken = std::min(bytes, byte_room_);
    if (byte_room_ != kUnlimited) byte_room_ -= taken;
    return taken;
}

Status MemoryChannel::flush() {
    while (!unsent_.empty() && unsent_.front().size() <= byte_room_) {
        const std::vector<std::byte> frame = std::move(unsent_.front());
        unsent_.pop_front();
        (void)take_room(frame.size());
        deliver(frame, {});
    }
    return Status::ok();
}

void MemoryChannel::deliver(std::span<const std::byte> frame, std::span<const std::byte> payload) {
    if (room_ != kUnlimited) --room_;
    ++counters_.frames_sent;
    counters_.bytes_sent += frame.size() + payload.size();
    sink_(frame, payload);
}

transport::Buffer MemoryChannel::lend() {
    if (lent_.size() >= kMaxLent) return {};
    const std::uint32_t id = next_id_++;
    std::vector<std::byte>& bytes = lent_[id];
    bytes.resize(wire::kMaxPayloadBytes);
    return {bytes.data(), bytes.size(), id};
}

transport::Buffer MemoryChannel::acquire_buffer() { return room_ != 0 ? lend() : transport::Buffer{}; }

bool MemoryChannel::send_buffer(std::span<const std::byte> frame, transport::Buffer buffer, std::size_t payload_bytes) {
    if (room_ == 0 || !unsent_.empty()) return false;
    deliver(frame, {buffer.data, payload_bytes});
    lent_.erase(buffer.id);
    return true;
}

bool MemoryChannel::send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                              std::size_t* progress_bytes) {
    if (room_ == 0 || !unsent_.empty()) return false;
    const std::size_t size = frame.size() + payload.size();
    *progress_bytes += take_room(size - *progress_bytes);
    if (*progress_bytes < size) return false;
    deliver(frame, payload);
    return true;
}

Result<transport::Received> MemoryChannel::poll() {
    if (frames_.empty()) {
        if (hung_up_) return Status::error(ErrorCode::unavailable, "the other end is gone");
        return transport::Received{};
    }
    current_ = std::move(frames_.front().frame);
    const std::vector<std::byte> payload = std::move(frames_.front().payload);
    frames_.pop_front();
    ++counters_.frames_received;
    counters_.bytes_received += current_.size() + payload.size();
    transport::Received received;
    received.frame = current_;
    if (payload.empty()) return received;
    if (placer_) {
        if (void* place = placer_(current_)) {
            std::memcpy(place, payload.data(), payload.size());
            received.payload = {static_cast<std::byte*>(place), payload.size()};
            return received;
        }
    }
    received.buffer = lend();
    if (!received.buffer) return Status::error(ErrorCode::protocol, "the session keeps all buffers");
    std::memcpy(received.buffer.data, payload.data(), payload.size());
    received.payload = {received.buffer.data, payload.size()};
    return received;
}

Status MemoryChannel::wait(bool writable, Clock::time_point deadline) {
    waited_for_room_ = writable;
    if (!frames_.empty() || hung_up_) return Status::ok();
    std::unique_lock lock(mutex_);
    // Nothing else happens on this thread meanwhile: longer waits would only hide a missing notify().
    const auto end = std::min(deadline, Clock::now() + std::chrono::milliseconds(10));
    notified_.wait_until(lock, end, [&] { return is_notified_; });
    is_notified_ = false;
    return Status::ok();
}

void MemoryChannel::notify() {
    std::lock_guard lock(mutex_);
    is_notified_ = true;
    notified_.notify_one();
}

Result<std::span<std::byte>> MemoryChannel::create_segment(std::uint32_t, std::size_t) {
    return Status::error(ErrorCode::unsupported, "no segments here");
}

Result<std::span<std::byte>> MemoryChannel::receive_segment(std::uint32_t segment, std::size_t size_bytes) {
    const auto found = segments_.find(segment);
    if (found == segments_.end() || found->second.size() != size_bytes)
        return Status::error(ErrorCode::protocol, "no such segment was passed");
    return std::span<std::byte>(found->second);
}

}  // namespace weft::executor
