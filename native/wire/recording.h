// The file of `weft run --record`: a header, then every frame that the client sent with its payload. Frames are stored
// as on the wire. Format: docs/design/wire.md.
#pragma once

#include <array>
#include <cstdint>

#include "gen/wire_frames.h"

namespace weft::wire {

inline constexpr std::array<std::uint8_t, 8> kRecordingMagic = {0x89, 'W', 'F', 'R', 'E', 'C', '\n', 0x1a};

struct RecordingHeader {
    std::array<std::uint8_t, 8> magic = kRecordingMagic;
    std::uint32_t protocol = kProtocolVersion;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(RecordingHeader) == 16);

// Followed by frame_bytes and payload_bytes.
struct RecordingEntry {
    std::uint32_t frame_bytes = 0;
    std::uint32_t payload_bytes = 0;
};
static_assert(sizeof(RecordingEntry) == 8);

}  // namespace weft::wire
