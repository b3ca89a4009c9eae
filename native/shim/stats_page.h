// One page that `weft run` shares with the program's processes: the shim adds to it, `weft run --stats` reads it
// afterwards. Layout fixed: src/weft/cli/stats.py reads the same offsets. All numbers are little-endian u64 and only
// ever grow.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::shim {

inline constexpr std::uint64_t kStatsMagic = 0x3153544154465457;  // "WTFTATS1"
inline constexpr std::size_t kStatsPageBytes = 4096;

struct StatsPage {
    std::uint64_t magic;               // written by weft run
    std::uint64_t version;             // 1
    std::atomic<std::uint64_t> calls;  // driver calls, local ones included
    std::atomic<std::uint64_t> frames_sent;
    std::atomic<std::uint64_t> bytes_sent;
    std::atomic<std::uint64_t> frames_received;
    std::atomic<std::uint64_t> bytes_received;
    std::atomic<std::uint64_t> round_trips;  // calls that waited for an answer
    std::atomic<std::uint64_t> launches;
    std::atomic<std::uint64_t> processes;  // processes that opened a session
    std::uint64_t reserved[6];
    char device[256];  // NUL-terminated, of the first session
    char path[256];
};
static_assert(offsetof(StatsPage, device) == 128 && sizeof(StatsPage) == 640);

}  // namespace weft::shim
