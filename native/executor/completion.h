// What waits for work of the driver to be complete, and the order in which completions are told: pieces of data before
// watches, watches before replies, so that nobody hears of a completion before he has what it implies. Must not block.
// Design note: docs/design/executor.md, docs/design/call-path.md "Completion".
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "executor/backoff.h"
#include "executor/event_pool.h"

namespace weft::executor {

class Completion {
  public:
    using Time = Backoff::Time;
    // Called with CUDA_SUCCESS or why the work failed.
    using Done = std::function<void(CUresult)>;

    // A piece of data to the client. In order of arrival per stream.
    void add_data(EventRef event, Done done, Time now);
    // A watched event or stream.
    void add_watch(EventRef event, Done done, Time now);
    // A reply, fence or job: done when all events are complete.
    void add_wait(std::vector<EventRef> events, Done done, Time now);
    // Every look at something that is not an event (streams with full queues): keeps the loop looking.
    void start_looking(Time now) { backoff_.start(now); }

    // Tells everything that is complete, if it is time to look. True if something was told. keep_looking: somebody else
    // needs looks, too.
    bool look(Time now);
    bool is_due(Time now) const { return backoff_.is_due(now); }
    // Tells what is complete before a reply that was not waited for: pieces of data and watches.
    void tell_implied();

    // Lets go of events that are complete, of waits that go on for others: their context is about to end.
    void let_go();

    // Forgets everything without telling.
    void clear();

    bool is_idle() const { return data_.empty() && watches_.empty() && waits_.empty(); }
    std::size_t size() const { return data_.size() + watches_.size() + waits_.size(); }
    Backoff& backoff() { return backoff_; }

  private:
    struct One {
        EventRef event;
        Done done;
    };
    struct Many {
        std::vector<EventRef> events;  // those not known to be complete
        CUresult status = CUDA_SUCCESS;
        Done done;
    };
    static bool is_complete(Many& many);
    bool tell_data();
    bool tell_watches();

    Backoff backoff_;
    std::vector<One> data_;
    std::vector<One> watches_;
    std::vector<Many> waits_;
};

}  // namespace weft::executor
