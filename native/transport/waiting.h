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

// Looks at something repeatedly before its owner sleeps. Where waits last long it looks less often, so that a process
// that waits for minutes does not take the processor from its peer each time; where a sleep turns out to have been
// short it looks as long as it may: two ends that both sleep cost each other two wake-ups per round trip and would
// never find out.
class Spinner {
  public:
    explicit Spinner(Clock::duration most) : most_(most), budget_(most) {}

    // True when ready() was; false when it is time to sleep, or the deadline has passed.
    template <typename Ready>
    bool spin(Ready&& ready, Clock::time_point deadline) {
        const auto now = Clock::now();
        const auto end = deadline - now < budget_ ? deadline : now + budget_;
        for (std::uint32_t i = 1;; ++i) {
            if (ready()) return true;
            if (i % kLooksPerClock == 0 && Clock::now() >= end) return false;
            cpu_pause();  // and no sched_yield: beside busy processes each one costs a slice of time
        }
    }
    // The owner slept, and spinning and sleep lasted this long together.
    void learn(Clock::duration waited) {
        budget_ = waited < kShortWaits * most_ ? most_ : std::max(most_ / kLeastPart, budget_ / 2);
    }

  private:
    static constexpr std::uint32_t kLooksPerClock = 8;
    static constexpr int kShortWaits = 2;
    static constexpr int kLeastPart = 16;
    const Clock::duration most_;
    Clock::duration budget_;
};

// The time left until a deadline as ppoll wants it; null for "no end".
struct PollTimeout {
    explicit PollTimeout(Clock::time_point deadline);
    const timespec* get() const { return endless ? nullptr : &left; }
    timespec left{};
    bool endless = false;
};

}  // namespace weft::transport
