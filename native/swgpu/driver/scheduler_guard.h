// Shared by the two halves of the scheduler: its lock, and a short spin. Not for others.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "swgpu/driver/scheduler.h"

namespace weft::swdriver {

// Holds the lock; when it lets go, the operations that ended are destroyed outside the lock.
class Scheduler::Guard {
  public:
    explicit Guard(Scheduler& scheduler) : scheduler_(scheduler), lock_(scheduler.mutex_) {}
    ~Guard() {
        if (lock_.owns_lock()) unlock();
    }
    void unlock() {
        std::vector<std::unique_ptr<Operation>> garbage;
        garbage.swap(scheduler_.garbage_);
        lock_.unlock();
    }
    void lock() { lock_.lock(); }
    // For waits on a condition, which let go of the lock behind this class's back.
    void drop_garbage() {
        while (!scheduler_.garbage_.empty()) {
            unlock();
            lock();
        }
    }
    std::unique_lock<std::mutex>& raw() { return lock_; }

  private:
    Scheduler& scheduler_;
    std::unique_lock<std::mutex> lock_;
};

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

template <typename Done>
bool spin_until(std::uint64_t duration_ns, Done done) {
    const std::uint64_t end = now_ns() + duration_ns;
    do {
        for (int i = 0; i < 64; ++i) {
            if (done()) return true;
            relax();
        }
    } while (now_ns() < end);
    return done();
}

}  // namespace weft::swdriver
