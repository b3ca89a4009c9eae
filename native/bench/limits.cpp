// weft-bench-limits: prints the plain limits of this machine and the channels' figures against them, one JSON line
// each:
// {"name", "value", "unit", "limit", "ratio"}. A limit itself has its own value as limit and ratio 1.
// Options: --only plain|shm|tcp, --rounds N, --slots N, --slot-kib N, --piece-kib N, --spin-us N.
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

struct Settings {
    transport::ChannelOptions options;
    std::string_view only;
    int rounds = 2;

    bool wants(std::string_view part) const { return only.empty() || only == part; }
};

struct Limits {
    double memcpy_gb_per_s = 0, ring_us = 0, futex_us = 0, tcp_us = 0, shm_idle_us = 0, tcp_idle_us = 0,
           polling_gb_per_s = 0, blocking_gb_per_s = 0;
};

void keep_less(double& best, double value) { best = best == 0 ? value : std::min(best, value); }
void keep_more(double& best, double value) { best = std::max(best, value); }

void measure_plain(Limits& best) {
    keep_more(best.memcpy_gb_per_s, memcpy_gb_per_s());
    keep_less(best.ring_us, ring_round_trip_us());
    keep_less(best.futex_us, futex_round_trip_us());
    keep_less(best.tcp_us, tcp_round_trip_us());
    keep_less(best.shm_idle_us, futex_round_trip_after_idle_us());
    keep_less(best.tcp_idle_us, tcp_round_trip_after_idle_us());
    keep_more(best.polling_gb_per_s, tcp_stream_gb_per_s(true));
    keep_more(best.blocking_gb_per_s, tcp_stream_gb_per_s(false));
}

void measure_path(transport::PathKind kind, const Settings& settings, ChannelFigures& best) {
    const ChannelFigures figures = measure_channel(kind, settings.options);
    keep_less(best.round_trip_us, figures.round_trip_us);
    keep_less(best.round_trip_p99_us, figures.round_trip_p99_us);
    keep_less(best.round_trip_after_idle_us, figures.round_trip_after_idle_us);
    keep_more(best.frames_per_s, figures.frames_per_s);
    keep_more(best.to_executor_gb_per_s, figures.to_executor_gb_per_s);
    keep_more(best.to_client_gb_per_s, figures.to_client_gb_per_s);
    keep_more(best.idle_cpu_percent, figures.idle_cpu_percent);
    keep_more(best.idle_wakeups_per_s, figures.idle_wakeups_per_s);
}

void report_plain(const Limits& limits) {
    const double stream = std::max(limits.polling_gb_per_s, limits.blocking_gb_per_s);
    print("limits.memcpy_gb_per_s", limits.memcpy_gb_per_s, "GB/s", limits.memcpy_gb_per_s);
    print("limits.ping_pong_us.shm", limits.ring_us, "us", limits.ring_us);
    print("limits.ping_pong_us.futex", limits.futex_us, "us", limits.futex_us);
    print("limits.ping_pong_us.tcp", limits.tcp_us, "us", limits.tcp_us);
    print("limits.ping_pong_after_1ms_us.shm", limits.shm_idle_us, "us", limits.shm_idle_us);
    print("limits.ping_pong_after_1ms_us.tcp", limits.tcp_idle_us, "us", limits.tcp_idle_us);
    print("limits.stream_gb_per_s.tcp", stream, "GB/s", stream);
    print("limits.stream_polling_gb_per_s.tcp", limits.polling_gb_per_s, "GB/s", stream);
    print("limits.stream_blocking_gb_per_s.tcp", limits.blocking_gb_per_s, "GB/s", stream);
}

void report_path(transport::PathKind kind, const ChannelFigures& figures, const Limits& limits) {
    const bool shm = kind == transport::PathKind::shm;
    const std::string path = "." + std::string(transport::to_string(kind));
    const double round_trip = shm ? limits.ring_us : limits.tcp_us;
    const double bulk = shm ? limits.memcpy_gb_per_s : std::max(limits.polling_gb_per_s, limits.blocking_gb_per_s);
    print("channel.round_trip_p50_us" + path, figures.round_trip_us, "us", round_trip);
    print("channel.round_trip_p99_us" + path, figures.round_trip_p99_us, "us", round_trip);
    print("channel.round_trip_after_1ms_idle_us" + path, figures.round_trip_after_idle_us, "us",
          shm ? limits.shm_idle_us : limits.tcp_idle_us);
    print("channel.frames_per_s" + path, figures.frames_per_s, "1/s", shm ? 5e6 : 1e6);
    print("channel.to_executor_gb_per_s" + path, figures.to_executor_gb_per_s, "GB/s", bulk);
    print("channel.to_client_gb_per_s" + path, figures.to_client_gb_per_s, "GB/s", bulk);
    print("channel.idle_cpu_percent" + path, figures.idle_cpu_percent, "%", 0);
    print("channel.idle_wakeups_per_s" + path, figures.idle_wakeups_per_s, "1/s", 0);
}

Settings parse(int argc, char** argv) {
    Settings settings;
    transport::ChannelOptions& options = settings.options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const auto number = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
        if (name == "--only") settings.only = argv[i + 1];
        if (name == "--rounds") settings.rounds = static_cast<int>(number);
        if (name == "--slots") options.slot_count = number;
        if (name == "--slot-kib") options.slot_bytes = std::size_t{number} << 10;
        if (name == "--piece-kib") options.piece_bytes = std::size_t{number} << 10;
        if (name == "--spin-us") options.spin_time = std::chrono::microseconds(number);
    }
    return settings;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    using namespace weft::bench;
    using weft::transport::PathKind;
    const Settings settings = parse(argc, argv);
    Limits limits;
    ChannelFigures shm, tcp;
    // In turn, several times, the best of each counts: what else the machine does then disturbs all of them alike.
    for (int round = 0; round < settings.rounds; ++round) {
        if (settings.wants("plain")) measure_plain(limits);
        if (settings.wants("shm")) measure_path(PathKind::shm, settings, shm);
        if (settings.wants("tcp")) measure_path(PathKind::tcp, settings, tcp);
    }
    if (settings.wants("plain")) report_plain(limits);
    if (settings.wants("shm")) report_path(PathKind::shm, shm, limits);
    if (settings.wants("tcp")) report_path(PathKind::tcp, tcp, limits);
    return 0;
}
