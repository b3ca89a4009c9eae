// What both paths need to wait: a notifier that other threads of this process ring, and a spinner that looks a bounded
// number of times before its owner sleeps. Neither may block. docs/design/transport.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace weft::transport {

// A latch: notify() by anyone makes the wait in progress, or the next one, return.
class Notifier {
  public:
    static Result<UniqueFd> make_event();
    explicit Notifier(UniqueFd event) : event_(std::move(event)) {}

    void notify();
    // True once per notify().
    bool consume() {
        return pending_.load(std::memory_order_relaxed) && pending_.exchange(false, std::memory_order_acquire);
    }
    bool pending() const { return pending_.load(std::memory_order_relaxed); }
    // Around the sleep of the waiting thread; the descriptor becomes readable when notify() finds a sleeper.
    void begin_sleep();
    void end_sleep(bool fd_is_readable);
    int fd() const { return event_.get(); }
    void abandon() { event_.reset(); }

  private:
    UniqueFd event_;
    std::atomic<bool> pending_{false};
    std::atomic<bool> asleep_{false};
};

// Looks at something repeatedly. Where looking rarely helps it looks less often, so that a process that waits long does
// not take the processor from its peer.
class Spinner {
  public:
    explicit Spinner(std::uint32_t most) : most_(most), least_(std::max(most / 16, 1u)), budget_(most) {}

    // True when ready() was; false when it is time to sleep, or the deadline has passed.
    template <typename Ready>
    bool spin(Ready&& ready, Clock::time_point deadline) {
        for (std::uint32_t i = 0; i < budget_; ++i) {
            if (ready()) {
                budget_ = std::min(most_, budget_ * 2);
                return true;
            }
            if (i % kLooksPerClock == 0 && deadline != kNoDeadline && Clock::now() >= deadline) return false;
            cpu_pause();  // and no sched_yield: beside busy processes each one costs a slice of time
        }
        budget_ = std::max(least_, budget_ / 2);
        return false;
    }

  private:
    static constexpr std::uint32_t kLooksPerClock = 4;
    std::uint32_t most_;
    std::uint32_t least_;
    std::uint32_t budget_;
};

// The time left until a deadline as ppoll wants it; null for "no end".
struct PollTimeout {
    explicit PollTimeout(Clock::time_point deadline);
    const timespec* get() const { return endless ? nullptr : &left; }
    timespec left{};
    bool endless = false;
};

}  // namespace weft::transport
