// See helper.h. The thread starts with the first job.
#include "executor/helper.h"

#include <utility>

namespace weft::executor {

Helper::~Helper() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Helper::submit(std::function<void()> work, std::function<void()> finished) {
    ++unfinished_;
    {
        std::lock_guard lock(mutex_);
        waiting_.push_back({std::move(work), std::move(finished)});
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_one();
}

bool Helper::run_finished() {
    if (!has_done_.load(std::memory_order_acquire)) return false;
    std::vector<Job> done;
    {
        std::lock_guard lock(mutex_);
        done.swap(done_);
        has_done_.store(false, std::memory_order_release);
    }
    for (Job& job : done) {
        --unfinished_;
        job.finished();
    }
    return !done.empty();
}

void Helper::finish_all() {
    while (unfinished_ != 0) {
        {
            std::unique_lock lock(mutex_);
            finished_.wait(lock, [&] { return !done_.empty(); });
        }
        run_finished();
    }
}

void Helper::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
        if (stop_) return;
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        job.work();
        job.work = nullptr;
        lock.lock();
        done_.push_back(std::move(job));
        has_done_.store(true, std::memory_order_release);
        finished_.notify_one();
        lock.unlock();
        wake_();
        lock.lock();
    }
}

}  // namespace weft::executor
