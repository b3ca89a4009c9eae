// The frame: the unit of the ordered stream between a client process and its executor.
// Layout, grammar and a worked example: docs/design/wire.md. All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

inline constexpr std::size_t kMaxFrameBytes = 64 * 1024;      // header + arguments
inline constexpr std::size_t kMaxPayloadBytes = 1024 * 1024;  // bulk bytes that follow one frame
inline constexpr std::size_t kMaxInlineBytes = 8 * 1024;      // copies up to this size travel inside the frame

enum FrameFlags : std::uint16_t {
    kFlagPayload = 1,  // payload_bytes of bulk data belong to this frame
    kFlagWaiting = 2,  // the client waits: exactly one reply with the same `request` comes back
};

struct FrameHeader {
    std::uint32_t size_bytes;  // header + arguments; a multiple of 8; 24..kMaxFrameBytes
    std::uint16_t opcode;
    std::uint16_t flags;          // FrameFlags
    std::uint32_t context;        // the client's number of the CUDA context; 0: none
    std::uint32_t request;        // number of a waiting call, echoed by its reply; else 0
    std::uint32_t payload_bytes;  // 0 without kFlagPayload; at most kMaxPayloadBytes
    std::uint32_t payload_slot;   // shm: slot that holds the payload; set by the transport; tcp: 0
};
static_assert(sizeof(FrameHeader) == 24);

}  // namespace weft::wire
