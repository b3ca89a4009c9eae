// The settings of a channel, for both paths. Why these values: docs/design/transport.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::transport {

struct ChannelOptions {
    // Commands in flight per direction: the ring of shm, the send buffer of tcp. A power of two, at least 128 KiB.
    std::size_t ring_bytes = 1u << 20;
    // shm: payload slots per direction (at most 64) and their size.
    std::uint32_t slot_count = 16;
    std::size_t slot_bytes = 256u << 10;
    // tcp: payload bytes per frame; staging buffers of this size per direction (at most 64).
    std::size_t piece_bytes = 256u << 10;
    std::uint32_t staging_count = 32;
    // How long wait() looks before it sleeps, at most. More than two wake-ups take, or two ends that both sleep go on
    // so.
    std::chrono::microseconds spin_time{100};
    // A peer that is silent for this long although it owes an answer is dead.
    std::chrono::milliseconds liveness_timeout{5000};
};

}  // namespace weft::transport
