// Wakes the loop from callbacks of the driver, which may come when the session is gone already.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "transport/channel.h"

namespace weft::executor {

class Waker {
  public:
    explicit Waker(transport::Channel* channel) : channel_(channel) {}
    void hurry() {
        hurried_.store(true);
        std::lock_guard lock(mutex_);
        if (channel_ != nullptr) channel_->notify();
    }
    // True once after hurry().
    bool take_hurried() { return hurried_.load(std::memory_order_relaxed) && hurried_.exchange(false); }
    // From here on nothing is woken.
    void retire() {
        std::lock_guard lock(mutex_);
        channel_ = nullptr;
    }

  private:
    std::atomic<bool> hurried_{false};
    std::mutex mutex_;
    transport::Channel* channel_;
};

}  // namespace weft::executor
