// When to look again at work that is not complete: at once for kSpin, then after a twentieth of the time waited, at
// most kMaxSleep. Pure. Design note: docs/design/executor.md.
#pragma once

#include <algorithm>
#include <chrono>

namespace weft::executor {

class Backoff {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::microseconds kSpin{100};
    static constexpr std::chrono::microseconds kMaxSleep{1000};

    // Somebody began to wait at `now`.
    void start(Time now) {
        since_ = now;
        next_ = now;
    }
    bool is_due(Time now) const { return now >= next_; }
    // Somebody looked and it was not complete.
    void looked(Time now) {
        const auto waited = now - since_;
        next_ = waited < kSpin ? now : now + std::min<std::chrono::nanoseconds>(waited / 20, kMaxSleep);
    }
    bool is_spinning(Time now) const { return now - since_ < kSpin; }
    Time next() const { return next_; }
    // Something told that it may be complete now.
    void hurry() { next_ = Time::min(); }

  private:
    Time since_{};
    Time next_{};
};

}  // namespace weft::executor
