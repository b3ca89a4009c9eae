#include "shim/page_faults.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace weft::shim {
namespace {

enum : std::uint32_t { kFree, kClaimed, kPosted, kDone };

struct Request {
    std::atomic<std::uint32_t> state{kFree};
    std::uint64_t address = 0;
    bool is_write = false;
    bool is_ours = false;
};

// As many threads can wait for pages at once; more of them wait for a request to become free.
std::array<Request, 64> g_requests;
std::atomic<std::uint32_t> g_posted{0};  // counts requests; the thread sleeps on it
std::atomic<FaultHandler> g_handler{nullptr};
std::atomic<pid_t> g_owner{0};  // a forked child has no thread that would answer

// Each time the signal is taken it is by another handler, which hands on to what it found then. So a handler that the
// program installed over one of ours may hand faults back to that one, and the chain still ends.
constexpr std::size_t kTimes = 8;
std::mutex g_mutex;  // of what follows, when written
std::size_t g_taken = 0;
std::array<struct sigaction, kTimes> g_previous;

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>* word) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Request& claim() {
    for (;;) {
        for (Request& request : g_requests) {
            std::uint32_t free = kFree;
            if (request.state.compare_exchange_strong(free, kClaimed)) return request;
        }
        ::sched_yield();
    }
}

bool ask(std::uint64_t address, bool is_write) {
    Request& request = claim();
    request.address = address;
    request.is_write = is_write;
    request.state.store(kPosted, std::memory_order_seq_cst);
    g_posted.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(&g_posted);
    while (request.state.load(std::memory_order_acquire) == kPosted) futex_wait(&request.state, kPosted);
    const bool is_ours = request.is_ours;
    request.state.store(kFree, std::memory_order_release);
    return is_ours;
}

void* serve(void*) {
    pthread_setname_np(pthread_self(), "weft-pages");
    for (;;) {
        const std::uint32_t posted = g_posted.load(std::memory_order_seq_cst);
        bool any = false;
        for (Request& request : g_requests) {
            if (request.state.load(std::memory_order_acquire) != kPosted) continue;
            request.is_ours = g_handler.load()(request.address, request.is_write);
            request.state.store(kDone, std::memory_order_release);
            futex_wake(&request.state);
            any = true;
        }
        if (!any) futex_wait(&g_posted, posted);
    }
}

// Where the processor does not say it: a page that can be read faults only when it is written, which is found out
// there.
bool is_write_access([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
    constexpr greg_t kWriteBit = 2;
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
    return false;
#endif
}

// As if we were not there.
void hand_on(const struct sigaction& next, int signal, siginfo_t* info, void* context) {
    if ((next.sa_flags & SA_SIGINFO) == 0 && (next.sa_handler == SIG_DFL || next.sa_handler == SIG_IGN)) {
        // The instruction faults again and ends the process as it would have without us.
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        ::sigaction(signal, &standard, nullptr);
        return;
    }
    if ((next.sa_flags & SA_SIGINFO) != 0) {
        next.sa_sigaction(signal, info, context);
    } else {
        next.sa_handler(signal);
    }
}

template <std::size_t Time>
void on_fault(int signal, siginfo_t* info, void* context) {
    const int kept = errno;
    const bool may_be_ours = info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (!may_be_ours || g_owner.load() != ::getpid() || !ask(address, is_write_access(context)))
        hand_on(g_previous[Time], signal, info, context);
    errno = kept;
}

using Action = void (*)(int, siginfo_t*, void*);
constexpr std::array<Action, kTimes> kHandlers = {&on_fault<0>, &on_fault<1>, &on_fault<2>, &on_fault<3>,
                                                  &on_fault<4>, &on_fault<5>, &on_fault<6>, &on_fault<7>};

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 &&
           std::find(kHandlers.begin(), kHandlers.end(), action.sa_sigaction) != kHandlers.end();
}

Status start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, &serve, nullptr);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return failure == 0 ? Status::ok() : Status::from_errno("pthread_create", failure);
}

}  // namespace

Status take_page_faults(FaultHandler handler) {
    struct sigaction current;
    ::sigaction(SIGSEGV, nullptr, &current);
    if (is_ours(current)) return Status::ok();
    std::lock_guard lock(g_mutex);
    if (g_owner.load() == 0) {
        g_handler.store(handler);
        if (Status started = start_thread(); !started) return started;
        g_owner.store(::getpid());
    }
    const std::size_t time = std::min(g_taken++, kTimes - 1);
    g_previous[time] = current;
    struct sigaction ours{};
    ours.sa_sigaction = kHandlers[time];
    // On the alternate stack if there is one: the handler of a program that catches the overflow of its stack gets
    // called from here.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    ::sigaction(SIGSEGV, &ours, nullptr);
    return Status::ok();
}

}  // namespace weft::shim
