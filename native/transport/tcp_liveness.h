// Is the other end of a TCP connection still there? Keep-alive answers while the connection is idle, the kernel's own
// counters while data waits for an acknowledgement. A peer that is stopped (debugger, SIGSTOP) is alive: its kernel
// acknowledges, with a closed window; TCP_USER_TIMEOUT would kill it and must not be used. docs/design/transport.md.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/status.h"

namespace weft::transport {

class TcpLiveness {
  public:
    TcpLiveness(int socket, std::chrono::milliseconds timeout) : socket_(socket), timeout_(timeout) {}

    // Options that only need to be set once.
    Status set_up();
    // Cheap until the next look is due. True when the peer is dead.
    bool peer_is_dead(Clock::time_point now) { return now >= next_look_ && look(now); }
    // Looks now. If the kernel had data queued then (which stops its keep-alive), a sleeper must come back by
    // next_look().
    bool look(Clock::time_point now);
    bool data_queued() const { return data_queued_; }
    Clock::time_point next_look() const { return next_look_; }

  private:
    const int socket_;
    const std::chrono::milliseconds timeout_;
    bool data_queued_ = false;
    Clock::time_point owing_since_{};
    Clock::time_point next_look_{};
};

}  // namespace weft::transport
