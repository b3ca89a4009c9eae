// What this process knows of the pages of one range of unified memory: which hold the current bytes here, and which of
// these were written since the device last saw them. Pure. A fault brings more pages at once the longer a program goes
// straight through memory, so that touching all of it costs few round trips and touching one word one page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::shim {

struct PageRun {
    static constexpr std::uint64_t kPageBytes = 4096;
    std::size_t first = 0, count = 0;
    std::uint64_t offset() const { return first * kPageBytes; }
    std::uint64_t size_bytes() const { return count * kPageBytes; }
};

class PageStates {
  public:
    static constexpr std::uint64_t kPageBytes = PageRun::kPageBytes;
    static constexpr std::size_t kMaxPagesAtOnce = 1024;

    // All pages hold what they should: nobody has written them yet.
    explicit PageStates(std::uint64_t size_bytes)
        : states_(size_bytes / kPageBytes, kCurrent), current_(states_.size()) {}

    using Run = PageRun;

    std::size_t size() const { return states_.size(); }
    bool has_current() const { return current_ != 0; }
    bool has_written() const { return written_ != 0; }
    bool is_current(std::size_t page) const { return states_[page] != kAway; }
    bool is_written(std::size_t page) const { return states_[page] == kWritten; }

    // The pages to serve together with one that was touched: alike, from it on, as many as going on deserves.
    Run around_fault(std::size_t page) {
        window_ = page == expected_ ? std::min(window_ * 2, kMaxPagesAtOnce) : 1;
        Run run{page, 1};
        while (run.count < window_ && page + run.count < states_.size() && states_[page + run.count] == states_[page])
            ++run.count;
        expected_ = page + run.count;
        return run;
    }
    void set_current(const Run& run) { set(run, kCurrent); }
    void set_written(const Run& run) { set(run, kWritten); }
    // The device may write any page now.
    void all_away() {
        std::fill(states_.begin(), states_.end(), kAway);
        current_ = written_ = 0;
    }
    // action(run) for each stretch of written pages, until one fails; its result. Success is 0.
    template <typename Action>
    auto for_each_written(Action&& action) -> decltype(action(Run{})) {
        for (std::size_t page = 0, left = written_; left != 0; ++page) {
            if (states_[page] != kWritten) continue;
            Run run{page, 0};
            while (page < states_.size() && states_[page] == kWritten) ++page, ++run.count;
            left -= run.count;
            if (const auto failed = action(run); failed != decltype(failed){}) return failed;
        }
        return {};
    }
    // action(run) for each stretch of pages of [first, first + count) that are not here.
    template <typename Action>
    auto for_each_away(Run within, Action&& action) -> decltype(action(Run{})) {
        for (std::size_t page = within.first, end = within.first + within.count; page < end;) {
            if (states_[page] != kAway) {
                ++page;
                continue;
            }
            Run run{page, 0};
            while (page < end && states_[page] == kAway) ++page, ++run.count;
            if (const auto failed = action(run); failed != decltype(failed){}) return failed;
        }
        return {};
    }

  private:
    enum State : std::uint8_t { kAway, kCurrent, kWritten };

    void set(const Run& run, State state) {
        for (std::size_t page = run.first; page < run.first + run.count; ++page) {
            current_ += (states_[page] == kAway ? 1 : 0);
            written_ += (state == kWritten ? 1 : 0);
            written_ -= (states_[page] == kWritten ? 1 : 0);
            states_[page] = state;
        }
    }

    std::vector<State> states_;
    std::size_t current_ = 0;  // pages not away
    std::size_t written_ = 0;
    std::size_t expected_ = SIZE_MAX;  // the page after the last ones that were served
    std::size_t window_ = 1;
};

}  // namespace weft::shim
