// Sleep and wake-up follow Dekker's pattern: the thread announces that it sleeps and looks once more; a poke happens
// after the work is visible, so one of the two always sees the other.
#include "shim/helper_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

namespace weft::shim {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(60);

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, nullptr,
                     nullptr, 0);
}

}  // namespace

Status HelperThread::start(std::function<bool()> turn) {
    turn_ = std::move(turn);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, &HelperThread::main, this);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return failure == 0 ? Status::ok() : Status::from_errno("pthread_create", failure);
}

void* HelperThread::main(void* self) {
    pthread_setname_np(pthread_self(), "weft-helper");
    static_cast<HelperThread*>(self)->run();
    return nullptr;
}

void HelperThread::poke() {
    if (state_.load(std::memory_order_seq_cst) == kAwake) return;
    std::uint32_t asleep = kAsleep;
    if (state_.compare_exchange_strong(asleep, kWaking)) futex(&state_, FUTEX_WAKE, 1);
}

void HelperThread::run() {
    for (;;) {
        state_.store(kAwake, std::memory_order_seq_cst);
        if (spin()) continue;
        state_.store(kAsleep, std::memory_order_seq_cst);
        if (turn_()) continue;  // work that came while we announced our sleep
        while (state_.load(std::memory_order_seq_cst) == kAsleep) futex(&state_, FUTEX_WAIT, kAsleep);
    }
}

// Looks for work until there was none for kSpin; yields the core between looks.
bool HelperThread::spin() {
    auto idle_since = Clock::now();
    while (Clock::now() - idle_since < kSpin) {
        if (turn_())
            idle_since = Clock::now();
        else
            sched_yield();
    }
    return false;
}

}  // namespace weft::shim
