// One thread for driver calls that take long (module load, link, contexts, memory mapping): jobs run in order, and what
// follows from each runs on the loop's thread. Bounded by its user (see size()). Design note: docs/design/executor.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::executor {

class Helper {
  public:
    // wake: called on the helper's thread when a job is done.
    explicit Helper(std::function<void()> wake) : wake_(std::move(wake)) {}
    // Waits for the job under way; jobs not begun are dropped.
    ~Helper();
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

    // work runs on the helper's thread, then `finished` in run_finished().
    void submit(std::function<void()> work, std::function<void()> finished);
    // On the loop's thread; false when nothing was there.
    bool run_finished();
    // Waits for all jobs and runs what follows from them. For the end of a session only.
    void finish_all();
    // Jobs not finished yet, on the loop's thread.
    std::size_t size() const { return unfinished_; }

  private:
    struct Job {
        std::function<void()> work;
        std::function<void()> finished;
    };
    void run();

    std::function<void()> wake_;
    std::size_t unfinished_ = 0;
    std::atomic<bool> has_done_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable finished_;
    std::deque<Job> waiting_;
    std::vector<Job> done_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace weft::executor
