#include "transport/faulty.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace weft::transport {

namespace {

class FaultyChannel final : public Channel {
  public:
    FaultyChannel(std::unique_ptr<Channel> inner, const Faults& faults)
        : inner_(std::move(inner)), faults_(faults), random_(faults.seed), copy_(wire::kMaxFrameBytes) {}

    PathKind kind() const override { return inner_->kind(); }
    void set_placer(Placer placer) override { inner_->set_placer(std::move(placer)); }
    std::byte* reserve(std::size_t size_bytes) override { return cut_ ? nullptr : inner_->reserve(size_bytes); }
    void commit(std::size_t size_bytes) override { inner_->commit(size_bytes); }
    Buffer acquire_buffer() override { return inner_->acquire_buffer(); }
    void discard_buffer(Buffer buffer) override { inner_->discard_buffer(buffer); }
    bool send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) override {
        return !cut_ && inner_->send_buffer(frame, buffer, payload_bytes);
    }
    bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                   std::size_t* progress_bytes) override {
        return !cut_ && inner_->send_from(frame, payload, progress_bytes);
    }
    std::size_t payload_piece_bytes() const override { return inner_->payload_piece_bytes(); }

    Status flush() override { return cut_ ? cut_status() : inner_->flush(); }
    bool has_unsent() const override { return inner_->has_unsent(); }

    Result<Received> poll() override;
    void release_buffer(Buffer buffer) override { inner_->release_buffer(buffer); }
    Status wait(bool writable, Clock::time_point deadline) override {
        if (cut_) return cut_status();
        return held_back_ ? Status::ok() : inner_->wait(writable, deadline);
    }
    void notify() override { inner_->notify(); }

    Result<std::span<std::byte>> create_segment(std::uint32_t segment, std::size_t size_bytes) override {
        return inner_->create_segment(segment, size_bytes);
    }
    Result<std::span<std::byte>> receive_segment(std::uint32_t segment, std::size_t size_bytes) override {
        return inner_->receive_segment(segment, size_bytes);
    }
    void release_segment(std::uint32_t segment) override { inner_->release_segment(segment); }
    Counters counters() const override { return inner_->counters(); }
    void close() override { inner_->close(); }
    void abandon() override { inner_->abandon(); }

  private:
    static Status cut_status() { return Status::error(ErrorCode::unavailable, "the connection was cut by a test"); }
    bool happens(std::uint32_t one_in) { return one_in > 0 && random_.below(one_in) == 0; }
    void spoil(Received& received);
    void truncate(Received& received);

    std::unique_ptr<Channel> inner_;
    const Faults faults_;
    Random random_;
    std::vector<std::byte> copy_;
    std::uint64_t received_ = 0;
    bool held_back_ = false;
    std::atomic<bool> cut_{false};
};

Result<Received> FaultyChannel::poll() {
    if (cut_) return cut_status();
    held_back_ = happens(faults_.delay_one_in);
    if (held_back_) return Received{};
    auto received = inner_->poll();
    if (!received || !*received) return received;
    if (faults_.cut_after_frames > 0 && received_ == faults_.cut_after_frames) {
        cut_ = true;
        inner_->close();
        return cut_status();
    }
    ++received_;
    std::memcpy(copy_.data(), received->frame.data(), received->frame.size());
    received->frame = {copy_.data(), received->frame.size()};
    if (happens(faults_.garbage_one_in)) spoil(*received);
    if (happens(faults_.truncate_one_in)) truncate(*received);
    return received;
}

// A transport never hands out a frame whose size is wrong or whose payload is not the announced one, so these stay.
void FaultyChannel::spoil(Received& received) {
    wire::FrameHeader before;
    std::memcpy(&before, copy_.data(), sizeof before);
    copy_[random_.below(received.frame.size())] ^= static_cast<std::byte>(1 + random_.below(255));
    wire::FrameHeader after;
    std::memcpy(&after, copy_.data(), sizeof after);
    after.size_bytes = before.size_bytes;
    after.payload_bytes = before.payload_bytes;
    after.flags = static_cast<std::uint16_t>((after.flags & ~wire::kFlagPayload) | (before.flags & wire::kFlagPayload));
    std::memcpy(copy_.data(), &after, sizeof after);
}

void FaultyChannel::truncate(Received& received) {
    const std::size_t arguments = received.frame.size() - sizeof(wire::FrameHeader);
    const std::size_t kept = sizeof(wire::FrameHeader) + random_.below(arguments + 1) / 8 * 8;
    auto* header = reinterpret_cast<wire::FrameHeader*>(copy_.data());
    header->size_bytes = static_cast<std::uint32_t>(kept);
    received.frame = {copy_.data(), kept};
}

}  // namespace

std::unique_ptr<Channel> make_faulty(std::unique_ptr<Channel> inner, const Faults& faults) {
    return std::make_unique<FaultyChannel>(std::move(inner), faults);
}

}  // namespace weft::transport
