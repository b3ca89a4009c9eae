// See outbox.h.
#include "executor/outbox.h"

#include <algorithm>
#include <utility>

namespace weft::executor {

namespace {

template <typename Frame>
std::vector<std::byte> payload_frame(std::uint32_t context, std::uint32_t request, std::size_t payload_bytes) {
    std::vector<std::byte> frame(wire::encoded_size<Frame>(0));
    wire::begin_frame<Frame>(frame.data(), context, request, wire::kFlagPayload, 0);
    reinterpret_cast<wire::FrameHeader*>(frame.data())->payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    return frame;
}

std::vector<std::byte> data_frame(std::uint32_t context, std::uint32_t transfer, std::uint64_t offset,
                                  std::size_t payload_bytes) {
    std::vector<std::byte> frame = payload_frame<wire::Data>(context, 0, payload_bytes);
    auto* data = reinterpret_cast<wire::Data*>(frame.data() + sizeof(wire::FrameHeader));
    data->transfer = transfer;
    data->offset = offset;
    return frame;
}

}  // namespace

void Outbox::reply(std::uint32_t context, std::uint32_t request, CUresult status, std::span<const std::byte> tail) {
    const auto fill = [&](wire::Reply& reply) {
        reply.status = static_cast<std::int32_t>(status);
        reply.tail_bytes = static_cast<std::uint32_t>(tail.size());
    };
    ++replies_;
    if (tail.size() <= wire::kMaxTailBytes<wire::Reply>) return send<wire::Reply>(context, request, tail, fill);
    if (tail.size() > channel_.payload_piece_bytes()) return reply(context, request, CUDA_ERROR_NOT_SUPPORTED);
    Item item;
    item.frame = payload_frame<wire::Reply>(context, request, tail.size());
    fill(*reinterpret_cast<wire::Reply*>(item.frame.data() + sizeof(wire::FrameHeader)));
    item.payload.assign(tail.begin(), tail.end());
    item.payload_bytes = tail.size();
    waiting_bytes_ += tail.size();
    items_.push_back(std::move(item));
    drain();
}

void Outbox::send_data(std::uint32_t context, std::uint32_t transfer, std::uint64_t offset, transport::Buffer buffer,
                       std::size_t size_bytes) {
    Item item;
    item.frame = data_frame(context, transfer, offset, size_bytes);
    item.buffer = buffer;
    item.payload_bytes = size_bytes;
    items_.push_back(std::move(item));
    drain();
}

void Outbox::send_data_inline(std::uint32_t context, std::uint32_t transfer, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
    send<wire::Data>(context, 0, bytes, [&](wire::Data& data) {
        data.transfer = transfer;
        data.size_bytes = static_cast<std::uint32_t>(bytes.size());
        data.offset = offset;
    });
}

void Outbox::send_transfer(std::uint32_t context, std::uint32_t transfer, std::span<const std::byte> bytes,
                           std::function<void()> sent) {
    transfers_.push_back({context, transfer, bytes, std::move(sent)});
}

std::vector<std::byte>* Outbox::append(std::size_t frame_bytes) {
    items_.emplace_back();
    items_.back().frame.resize(frame_bytes);
    waiting_bytes_ += frame_bytes;
    return &items_.back().frame;
}

bool Outbox::drain() {
    bool moved = false;
    committed_ = true;
    for (;;) {
        // A payload that is under way has to be finished before anything else is appended.
        if (transfer_under_way_) {
            if (!drain_transfer()) return moved;
            moved = true;
        }
        while (!items_.empty()) {
            if (!drain_item()) return moved;
            moved = true;
        }
        if (transfers_.empty() || !drain_transfer()) return moved;
        moved = true;
    }
}

bool Outbox::drain_item() {
    Item& item = items_.front();
    if (item.buffer) {
        if (!channel_.send_buffer(item.frame, item.buffer, item.payload_bytes)) return false;
    } else if (!item.payload.empty()) {
        if (!channel_.send_from(item.frame, item.payload, &progress_)) return false;
        progress_ = 0;
        waiting_bytes_ -= item.payload.size();
    } else if (!send_frame(item)) {
        return false;
    } else {
        waiting_bytes_ -= item.frame.size();
    }
    items_.pop_front();
    return true;
}

bool Outbox::send_frame(const Item& item) {
    std::byte* at = channel_.reserve(item.frame.size());
    if (at == nullptr) return false;
    std::memcpy(at, item.frame.data(), item.frame.size());
    channel_.commit(item.frame.size());
    return true;
}

// One piece; true when it has left.
bool Outbox::drain_transfer() {
    Transfer& transfer = transfers_.front();
    const std::size_t size = std::min(transfer.bytes.size() - transfer.offset, channel_.payload_piece_bytes());
    const auto frame = data_frame(transfer.context, transfer.number, transfer.offset, size);
    const bool left = channel_.send_from(frame, transfer.bytes.subspan(transfer.offset, size), &progress_);
    transfer_under_way_ = !left && progress_ != 0;
    if (!left) return false;
    progress_ = 0;
    transfer.offset += size;
    if (transfer.offset == transfer.bytes.size()) {
        const std::function<void()> sent = std::move(transfer.sent);
        transfers_.pop_front();
        sent();
    } else if (transfers_.size() > 1) {
        // Take turns, so that a short transfer does not wait for a long one.
        transfers_.push_back(std::move(transfer));
        transfers_.pop_front();
    }
    return true;
}

}  // namespace weft::executor
