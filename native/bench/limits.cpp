// weft-bench-limits: prints the plain limits of this machine and the channels' figures against them, one JSON line
// each:
// {"name", "value", "unit", "limit", "ratio"}. A limit itself has its own value as limit and ratio 1.
// Options: --only plain|shm|tcp, --slots N, --slot-kib N, --piece-kib N, --spins N (shm), --tcp-spins N.
#include "limits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace weft::bench {
namespace {

void print(const std::string& name, double value, const char* unit, double limit) {
    std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"limit\": %.6g, \"ratio\": %.4g}\n",
                name.c_str(), value, unit, limit, limit > 0 ? value / limit : 0.0);
    std::fflush(stdout);
}

struct Limits {
    double memcpy_gb_per_s = 0, ring_us = 0, futex_us = 0, tcp_us = 0, tcp_stream_gb_per_s = 0;
};

Limits measure_plain() {
    Limits limits;
    limits.memcpy_gb_per_s = memcpy_gb_per_s();
    limits.ring_us = ring_round_trip_us();
    limits.futex_us = futex_round_trip_us();
    limits.tcp_us = tcp_round_trip_us();
    const double polling = tcp_stream_gb_per_s(true);
    const double blocking = tcp_stream_gb_per_s(false);
    limits.tcp_stream_gb_per_s = std::max(polling, blocking);
    print("limits.memcpy_gb_per_s", limits.memcpy_gb_per_s, "GB/s", limits.memcpy_gb_per_s);
    print("limits.ping_pong_us.shm", limits.ring_us, "us", limits.ring_us);
    print("limits.ping_pong_us.futex", limits.futex_us, "us", limits.futex_us);
    print("limits.ping_pong_us.tcp", limits.tcp_us, "us", limits.tcp_us);
    print("limits.stream_polling_gb_per_s.tcp", polling, "GB/s", limits.tcp_stream_gb_per_s);
    print("limits.stream_blocking_gb_per_s.tcp", blocking, "GB/s", limits.tcp_stream_gb_per_s);
    return limits;
}

void report(transport::PathKind kind, const transport::ChannelOptions& options, const Limits& limits) {
    const bool shm = kind == transport::PathKind::shm;
    const ChannelFigures figures = measure_channel(kind, options);
    const std::string path = "." + std::string(transport::to_string(kind));
    const double round_trip = shm ? limits.ring_us : limits.tcp_us;
    const double bulk = shm ? limits.memcpy_gb_per_s : limits.tcp_stream_gb_per_s;
    print("channel.round_trip_p50_us" + path, figures.round_trip_us, "us", round_trip);
    print("channel.round_trip_p99_us" + path, figures.round_trip_p99_us, "us", round_trip);
    print("channel.round_trip_after_1ms_idle_us" + path, figures.round_trip_after_idle_us, "us", limits.futex_us);
    print("channel.frames_per_s" + path, figures.frames_per_s, "1/s", shm ? 5e6 : 1e6);
    print("channel.to_executor_gb_per_s" + path, figures.to_executor_gb_per_s, "GB/s", bulk);
    print("channel.to_client_gb_per_s" + path, figures.to_client_gb_per_s, "GB/s", bulk);
    print("channel.idle_cpu_percent" + path, figures.idle_cpu_percent, "%", 0);
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    using namespace weft;
    transport::ChannelOptions options;
    std::string_view only;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const auto number = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
        if (name == "--only") only = argv[i + 1];
        if (name == "--slots") options.slot_count = number;
        if (name == "--slot-kib") options.slot_bytes = std::size_t{number} << 10;
        if (name == "--piece-kib") options.piece_bytes = std::size_t{number} << 10;
        if (name == "--spins") options.shm_spins = number;
        if (name == "--tcp-spins") options.tcp_spins = number;
    }
    bench::Limits limits;
    if (only.empty() || only == "plain") limits = bench::measure_plain();
    if (only.empty() || only == "shm") bench::report(transport::PathKind::shm, options, limits);
    if (only.empty() || only == "tcp") bench::report(transport::PathKind::tcp, options, limits);
    return 0;
}
