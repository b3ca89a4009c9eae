// What is to be sent to the client. Goes straight into the channel while there is room and waits here, in order, while
// there is none. Long transfers from memory are cut into pieces, between which small frames may leave. Bounded by its
// user: see is_congested(). Must never wait. Design note: docs/design/executor.md.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gen/cuda_abi.h"
#include "gen/wire_frames.h"
#include "transport/channel.h"

namespace weft::executor {

class Outbox {
  public:
    static constexpr std::size_t kCongestedBytes = 4u << 20;
    static constexpr std::size_t kCongestedItems = 16384;

    explicit Outbox(transport::Channel& channel) : channel_(channel) {}

    // One frame without payload; fill(frame) writes its fields.
    template <typename Frame, typename Fill>
    void send(std::uint32_t context, std::uint32_t request, std::span<const std::byte> tail, Fill&& fill) {
        const std::size_t size = wire::encoded_size<Frame>(tail.size());
        std::byte* at = items_.empty() && !is_mid_piece() ? channel_.reserve(size) : nullptr;
        std::vector<std::byte>* waiting = nullptr;
        if (at == nullptr) {
            waiting = append(size);
            at = waiting->data();
        }
        Frame* frame = wire::begin_frame<Frame>(at, context, request, 0, tail.size());
        fill(*frame);
        if (!tail.empty()) std::memcpy(wire::tail_of<Frame>(at), tail.data(), tail.size());
        if (waiting == nullptr) {
            channel_.commit(size);
            committed_ = true;
        }
    }
    void reply(std::uint32_t context, std::uint32_t request, CUresult status, std::span<const std::byte> tail = {});
    // A piece of transfer in a buffer of the channel, which owns it from here.
    void send_data(std::uint32_t context, std::uint32_t transfer, std::uint64_t offset, transport::Buffer buffer,
                   std::size_t size_bytes);
    // A small piece of a transfer, inside the frame.
    void send_data_inline(std::uint32_t context, std::uint32_t transfer, std::uint64_t offset,
                          std::span<const std::byte> bytes);
    // A whole transfer straight from memory, which stays as it is until `sent` is called.
    void send_transfer(std::uint32_t context, std::uint32_t transfer, std::span<const std::byte> bytes,
                       std::function<void()> sent);

    // Moves what fits into the channel; true if something moved.
    bool drain();
    bool is_empty() const { return items_.empty() && transfers_.empty(); }
    // Stop taking in more work until the client has read.
    bool is_congested() const { return waiting_bytes_ > kCongestedBytes || items_.size() > kCongestedItems; }
    // Whether something went into the channel since this was asked last.
    bool take_committed() { return std::exchange(committed_, false); }
    std::uint64_t replies() const { return replies_; }

  private:
    struct Item {
        std::vector<std::byte> frame;
        transport::Buffer buffer;        // payload, if set
        std::vector<std::byte> payload;  // payload, if not empty
        std::size_t payload_bytes = 0;
    };
    struct Transfer {
        std::uint32_t context;
        std::uint32_t number;
        std::span<const std::byte> bytes;
        std::function<void()> sent;
        std::uint64_t offset = 0;
    };
    std::vector<std::byte>* append(std::size_t frame_bytes);
    bool drain_item();
    bool drain_transfer();
    bool send_frame(const Item& item);
    bool is_mid_piece() const { return progress_ != 0; }

    transport::Channel& channel_;
    std::deque<Item> items_;
    std::deque<Transfer> transfers_;
    std::size_t waiting_bytes_ = 0;
    std::size_t progress_ = 0;         // of the payload under way
    bool transfer_under_way_ = false;  // the payload under way is a piece of transfers_.front()
    std::uint64_t replies_ = 0;
    bool committed_ = false;
};

}  // namespace weft::executor
