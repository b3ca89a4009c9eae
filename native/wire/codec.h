// Checks, decodes and encodes frames by the generated descriptions (gen/wire_frames.h). Allocates nothing.
// A frame is only as good as its checks: decode a private copy, never memory that the peer can still write.
// Design note: docs/design/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "base/status.h"
#include "wire/frame.h"

namespace weft::wire {

enum class Direction : std::uint8_t { none, client_to_executor, executor_to_client };
// Whether a frame has a property: the reply of a waiting frame, a payload.
enum class Has : std::uint8_t { never, optional, always };

// What every frame of one opcode has in common.
struct FrameInfo {
    std::string_view name;  // empty: no such opcode
    Direction direction = Direction::none;
    Has waiting = Has::never;
    Has payload = Has::never;
    bool has_tail = false;
    std::uint16_t fixed_bytes = 0;    // of the fields; a multiple of 8
    std::int16_t stream_offset = -1;  // of the stream's number from the start of the frame; -1: no stream orders it
};

inline constexpr std::size_t kFrameAlignment = 8;

// A checked frame: its fields, and the rest of the arguments with up to 7 bytes of padding.
template <typename Frame>
struct View {
    FrameHeader header;
    Frame fields;
    std::span<const std::byte> tail;
};

// The header of a frame that is at least as long as a header.
inline FrameHeader header_of(std::span<const std::byte> frame) {
    FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof(header));
    return header;
}

// Checks size, alignment and flags against the description; says what is wrong.
Status check_frame(std::span<const std::byte> frame, const FrameInfo& info);

// The fields of a frame of the opcode Frame::kOpcode.
template <typename Frame>
Result<View<Frame>> decode(std::span<const std::byte> frame) {
    if (Status status = check_frame(frame, Frame::kInfo); !status) return status;
    View<Frame> view;
    view.header = header_of(frame);
    if (view.header.opcode != Frame::kOpcode) return Status::error(ErrorCode::protocol, "frame has another opcode");
    std::memcpy(&view.fields, frame.data() + sizeof(FrameHeader), sizeof(Frame));
    view.tail = frame.subspan(sizeof(FrameHeader) + sizeof(Frame));
    return view;
}

// Bytes of a frame with a tail, padding included.
template <typename Frame>
constexpr std::size_t encoded_size(std::size_t tail_bytes) {
    const std::size_t size = sizeof(FrameHeader) + sizeof(Frame) + tail_bytes;
    return (size + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// Largest tail of a frame.
template <typename Frame>
inline constexpr std::size_t kMaxTailBytes = kMaxFrameBytes - sizeof(FrameHeader) - sizeof(Frame);

// Writes the header at `at` (8-byte aligned, encoded_size<Frame>(tail_bytes) long), clears fields and padding, and
// returns the fields. The tail starts right behind them. tail_bytes is at most kMaxTailBytes<Frame>.
template <typename Frame>
Frame* begin_frame(std::byte* at, std::uint32_t context, std::uint32_t request, std::uint16_t flags,
                   std::size_t tail_bytes) {
    const std::size_t size = encoded_size<Frame>(tail_bytes);
    if (tail_bytes % kFrameAlignment != 0) std::memset(at + size - kFrameAlignment, 0, kFrameAlignment);
    const FrameHeader header{static_cast<std::uint32_t>(size), Frame::kOpcode, flags, context, request, 0, 0};
    std::memcpy(at, &header, sizeof(header));
    return new (at + sizeof(header)) Frame{};
}

// The tail of a frame begun at `at`.
template <typename Frame>
std::byte* tail_of(std::byte* at) {
    return at + sizeof(FrameHeader) + sizeof(Frame);
}

// A text tail: up to its first zero byte.
std::string_view text_of(std::span<const std::byte> tail);

}  // namespace weft::wire
