#include "shim/callbacks.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <chrono>

#include "shim/output.h"
#include "shim/session.h"

namespace weft::shim {

bool g_calls_back = false;
thread_local constinit bool t_is_callback_thread = false;

namespace {

// After a call the thread stays awake for a moment: the next one often follows at once, and a wake-up takes longer.
constexpr auto kSpin = std::chrono::microseconds(50);

}  // namespace

CUresult Callbacks::add(std::uint32_t number, const HostCall& call) {
    std::lock_guard lock(mutex_);
    if (!is_started_) {
        if (const CUresult started = start(); started != CUDA_SUCCESS) return started;
        is_started_ = true;
    }
    known_.emplace(number, call);
    return CUDA_SUCCESS;
}

void Callbacks::drop(std::uint32_t number) {
    std::lock_guard lock(mutex_);
    known_.erase(number);
}

void Callbacks::expect() {
    outstanding_.fetch_add(1);
    session_.expect_inbound();
}

void Callbacks::on_call(std::uint32_t number, CUresult status) {
    {
        std::lock_guard lock(mutex_);
        const auto found = known_.find(number);
        due_.push_back({number, found != known_.end() ? found->second : HostCall{}, status});
        if (found != known_.end() && !found->second.stays) known_.erase(found);
        due_count_.store(due_.size());
    }
    wake_.notify_one();
}

// Signals belong to the program's own threads, but for those that a thread gives itself: blocked, they would end the
// process, and touching managed memory raises one.
CUresult Callbacks::start() {
    sigset_t all, before;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    g_calls_back = true;
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, &Callbacks::main, this);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return failure == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void* Callbacks::main(void* self) {
    pthread_setname_np(pthread_self(), "weft-callback");
    t_is_callback_thread = true;
    static_cast<Callbacks*>(self)->run();
    return nullptr;
}

void Callbacks::run() {
    for (;;) {
        Due due;
        if (!spin()) {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return !due_.empty(); });
        }
        {
            std::lock_guard lock(mutex_);
            due = due_.front();
            due_.pop_front();
            due_count_.store(due_.size());
        }
        output_.write();
        invoke(due);
        outstanding_.fetch_sub(1);
        (void)session_.send<wire::HostDone>(0, 0, [&](auto& frame, std::byte*) { frame.call = due.number; });
        session_.expected_arrived();
    }
}

bool Callbacks::spin() {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (due_count_.load(std::memory_order_acquire) == 0) {
        if (std::chrono::steady_clock::now() > until) return false;
        sched_yield();
    }
    return true;
}

void Callbacks::invoke(const Due& due) {
    if (due.call.callback != nullptr) {
        due.call.callback(due.call.stream, due.status, due.call.data);
    } else if (due.call.function != nullptr && due.status == CUDA_SUCCESS) {
        due.call.function(due.call.data);
    }
}

}  // namespace weft::shim
