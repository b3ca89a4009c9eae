// What this machine gives without Weft, and what a channel makes of it: each function measures one thing between two
// processes and returns one number. It must not be linked into the product. Results and reading:
// docs/design/transport.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/fd.h"
#include "transport/channel.h"
#include "transport/options.h"

namespace weft::bench {

inline constexpr std::size_t kBulkBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMessageBytes = 64;

// --- plain limits
double memcpy_gb_per_s();
// Both ends poll a word in shared memory (the best there is), p50 in microseconds.
double ring_round_trip_us();
// Both ends sleep on a futex each time.
double futex_round_trip_us();
// The same, each one after 1 ms of silence.
double futex_round_trip_after_idle_us();
// Both ends poll their TCP socket.
double tcp_round_trip_us();
// Both ends sleep in recv, each one after 1 ms of silence.
double tcp_round_trip_after_idle_us();
// A plain socket over loopback into a buffer of 256 MiB, by a receiver that polls or one that blocks.
double tcp_stream_gb_per_s(bool polling);

// --- the same through a channel
struct ChannelFigures {
    double round_trip_us = 0;
    double round_trip_p99_us = 0;
    double round_trip_after_idle_us = 0;  // each one after 1 ms of silence
    double frames_per_s = 0;              // 96-byte frames
    double to_executor_gb_per_s = 0;
    double to_client_gb_per_s = 0;
    double idle_cpu_percent = 0;    // of the executor's end, while nothing happens
    double idle_wakeups_per_s = 0;  // likewise
};
ChannelFigures measure_channel(transport::PathKind kind, const transport::ChannelOptions& options);

// --- helpers
// Runs `peer` in a forked process that ends with it; the caller measures meanwhile.
class PeerProcess {
  public:
    explicit PeerProcess(const std::function<void()>& peer);
    ~PeerProcess();
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;
    // User and system time so far.
    double cpu_s() const;
    // How often it went to sleep so far.
    double sleeps() const;

  private:
    int pid_;
};

double percentile(std::vector<double> samples, double fraction);
// Pages touched, contents not all zero.
std::vector<std::byte> make_bulk();

}  // namespace weft::bench
