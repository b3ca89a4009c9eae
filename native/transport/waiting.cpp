#include "transport/waiting.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace weft::transport {

Result<UniqueFd> Notifier::make_event() {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) return Status::from_errno("eventfd", errno);
    return event;
}

void Notifier::notify() {
    if (pending_.exchange(true, std::memory_order_seq_cst)) return;
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void Notifier::begin_sleep() { asleep_.store(true, std::memory_order_seq_cst); }

void Notifier::end_sleep(bool fd_is_readable) {
    asleep_.store(false, std::memory_order_seq_cst);
    if (!fd_is_readable) return;
    std::uint64_t count;
    [[maybe_unused]] ssize_t got = ::read(event_.get(), &count, sizeof count);
}

PollTimeout::PollTimeout(Clock::time_point deadline) {
    if (deadline == Clock::time_point::max()) {
        endless = true;
        return;
    }
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (ns <= 0) return;
    left.tv_sec = ns / 1'000'000'000;
    left.tv_nsec = ns % 1'000'000'000;
}

}  // namespace weft::transport
