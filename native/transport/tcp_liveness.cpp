#include "transport/tcp_liveness.h"

#include <linux/tcp.h>  // the one of the C library does not know tcpi_notsent_bytes
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weft::transport {

namespace {

#ifndef TCP_RTO_MAX_MS
constexpr int kTcpRtoMaxMs = 44;  // Linux 6.15
#else
constexpr int kTcpRtoMaxMs = TCP_RTO_MAX_MS;
#endif

Status set_option(int socket, int level, int name, int value, const char* label) {
    if (::setsockopt(socket, level, name, &value, sizeof value) == 0) return Status::ok();
    return Status::from_errno(label, errno);
}

}  // namespace

Status TcpLiveness::set_up() {
    using std::chrono::seconds;
    const int whole = std::max<int>(2, static_cast<int>(std::chrono::duration_cast<seconds>(timeout_).count()));
    const int idle = std::max(1, whole * 2 / 5);
    const int count = std::max(1, whole - idle - 1);  // one second apart: dead by idle + count < whole
    if (Status s = set_option(socket_, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"); !s) return s;
    if (Status s = set_option(socket_, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"); !s) return s;
    if (Status s = set_option(socket_, IPPROTO_TCP, TCP_KEEPIDLE, idle, "TCP_KEEPIDLE"); !s) return s;
    if (Status s = set_option(socket_, IPPROTO_TCP, TCP_KEEPINTVL, 1, "TCP_KEEPINTVL"); !s) return s;
    if (Status s = set_option(socket_, IPPROTO_TCP, TCP_KEEPCNT, std::min(count, 127), "TCP_KEEPCNT"); !s) return s;
    // Without it the probes of a closed window come up to two minutes apart, and only then would a cut be seen. Kernels
    // that do not know it see such a cut later; nothing else changes.
    const int longest_ms = std::clamp(static_cast<int>(timeout_.count() / 5), 1000, 120'000);
    (void)set_option(socket_, IPPROTO_TCP, kTcpRtoMaxMs, longest_ms, "TCP_RTO_MAX_MS");
    return Status::ok();
}

bool TcpLiveness::look(Clock::time_point now) {
    using std::chrono::milliseconds;
    next_look_ = now + timeout_ / 16;
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket_, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
    data_queued_ = info.tcpi_unacked > 0 || info.tcpi_probes > 0 || info.tcpi_notsent_bytes > 0;
    // One unanswered probe of a closed window is no sign: answers to probes are limited to two per second.
    const bool owes = info.tcpi_unacked > 0 || info.tcpi_probes > 1;
    if (!owes) {
        owing_since_ = {};
        return false;
    }
    if (owing_since_ == Clock::time_point{}) owing_since_ = now;
    // The last acknowledgement may be old because the connection was idle, or because the next attempt is not due yet.
    const milliseconds silent(info.tcpi_last_ack_recv);
    const milliseconds attempt((info.tcpi_rto + 999) / 1000);
    const milliseconds limit = timeout_ * 3 / 4;
    return now - owing_since_ >= limit && silent >= limit && silent > attempt;
}

}  // namespace weft::transport
