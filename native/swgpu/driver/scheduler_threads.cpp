// The threads of the scheduler: workers that take kernels and short operations, one that takes short operations only
// (so that a copy never waits for a kernel's step), and one that calls host functions. All are started at first use and
// sleep while idle.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "swgpu/driver/context.h"
#include "swgpu/driver/driver.h"
#include "swgpu/driver/faults.h"
#include "swgpu/driver/scheduler.h"
#include "swgpu/driver/scheduler_guard.h"

namespace weft::swdriver {
namespace {

constexpr std::uint64_t kQuantum = 100'000;     // warp instructions per step, about a millisecond
constexpr std::uint64_t kFirstQuantum = 4'000;  // a kernel that ends within this is not worth waking another worker for
constexpr std::uint64_t kWorkerSpinNs = 20'000;
constexpr auto kValuePollInterval = std::chrono::microseconds(50);

// A detached thread with all signals blocked: they belong to the program.
void start_thread(const char* name, void* (*body)(void*), void* argument) {
    sigset_t all, previous;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    const int failed = pthread_create(&thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    pthread_attr_destroy(&attributes);
    if (failed == 0) {
        pthread_setname_np(thread, name);
    } else {
        std::string line = "weft-swgpu: cannot start a thread: ";
        line.append(strerror(failed)).push_back('\n');
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    }
}

}  // namespace

void Scheduler::start_threads() {
    if (started_) return;
    started_ = true;
    const auto kernel_worker = [](void* self) -> void* { return static_cast<Scheduler*>(self)->work(false), nullptr; };
    const auto copy_worker = [](void* self) -> void* { return static_cast<Scheduler*>(self)->work(true), nullptr; };
    for (int i = 0; i < threads_; ++i) start_thread("weft-kernel", kernel_worker, this);
    start_thread("weft-copy", copy_worker, this);
}

void Scheduler::start_host_thread() {
    if (host_started_) return;
    host_started_ = true;
    const auto caller = [](void* self) -> void* { return static_cast<Scheduler*>(self)->call_hosts(), nullptr; };
    start_thread("weft-host", caller, this);
}

// All below: lock held.

void Scheduler::offer_kernel(KernelOperation& kernel, bool first) {
    if (kernel.queued || kernel.finished) return;
    kernel.queued = true;
    if (first) {
        kernels_.push_front(&kernel);
    } else {
        kernels_.push_back(&kernel);
    }
}

void Scheduler::wake_kernel_worker() {
    offers_.fetch_add(1, std::memory_order_release);
    if (!spinning_ && sleeping_ > 0) wake_.notify_one();
}

void Scheduler::wake_light() {
    offers_.fetch_add(1, std::memory_order_release);
    if (spinning_) return;
    if (light_sleeping_) {
        wake_light_.notify_one();
    } else if (sleeping_ > 0) {
        wake_.notify_one();
    }
}

void Scheduler::work(bool light_only) {
    engine::Worker worker;
    Guard guard(*this);
    while (true) {
        if (run_light(guard)) continue;
        if (light_only) {
            sleep_light(guard);
        } else if (!run_kernel(guard, worker)) {
            sleep_kernel(guard);
        }
    }
}

bool Scheduler::run_light(Guard& guard) {
    if (light_.empty()) return false;
    Ref<Stream> stream = std::move(light_.front());
    light_.pop_front();
    auto* operation = static_cast<WorkOperation*>(stream->head);
    guard.unlock();
    const CUresult result = operation->run();
    if (result != CUDA_SUCCESS)
        report_failure(stream->context(), result, "a copy or fill met an address that is no longer valid");
    guard.lock();
    finish_and_go_on(*stream);
    guard.unlock();
    stream = nullptr;  // may be the last reference: not under the lock
    guard.lock();
    return true;
}

bool Scheduler::run_kernel(Guard& guard, engine::Worker& worker) {
    if (kernels_.empty()) return false;
    KernelOperation& kernel = *kernels_.front();
    kernels_.pop_front();
    kernel.queued = false;
    ++kernel.steppers;
    const bool first = !std::exchange(kernel.stepped, true);
    if (!first && kernel.launch->parallelism() > 1) offer_kernel(kernel, false);
    if (!kernels_.empty()) wake_kernel_worker();
    guard.unlock();
    const engine::StepOutcome outcome = kernel.launch->step(worker, first ? kFirstQuantum : kQuantum);
    guard.lock();
    --kernel.steppers;
    if (outcome == engine::StepOutcome::finished) kernel.finished = true;
    if (!kernel.finished) {
        if (outcome == engine::StepOutcome::progressed || kernel.steppers == 0) offer_kernel(kernel, false);
        return true;
    }
    if (kernel.queued) {
        kernels_.erase(std::find(kernels_.begin(), kernels_.end(), &kernel));
        kernel.queued = false;
    }
    if (kernel.steppers == 0) end_kernel(kernel, guard);
    return true;
}

void Scheduler::end_kernel(KernelOperation& kernel, Guard& guard) {
    Ref<Stream> stream = kernel.stream;
    running_.erase(std::find(running_.begin(), running_.end(), &kernel));
    const engine::Fault& fault = kernel.launch->fault();
    if (fault.kind != engine::FaultKind::none) {
        guard.unlock();
        report_failure(stream->context(), to_result(fault.kind), fault.describe());
        guard.lock();
    }
    finish_and_go_on(*stream);
    guard.unlock();
    stream = nullptr;
    guard.lock();
}

void Scheduler::cancel(Context& context) {
    Guard guard(*this);
    for (KernelOperation* kernel : running_) {
        if (&kernel->stream->context() == &context) kernel->launch->cancel();
    }
    for (Stream* stream : context.busy) unblocked_.push_back(Ref<Stream>(stream));
    drain();
}

void Scheduler::poll_values() {
    std::vector<Ref<Stream>> ready;
    std::erase_if(polled_, [&](const Ref<Stream>& stream) {
        const bool over =
            static_cast<WaitValueOperation*>(stream->head)->satisfied() || stream->context().status() != CUDA_SUCCESS;
        if (over) ready.push_back(stream);
        return over;
    });
    for (Ref<Stream>& stream : ready) finish_and_go_on(*stream);
}

void Scheduler::sleep_light(Guard& guard) {
    if (!polled_.empty()) {
        poll_values();
        if (!light_.empty()) return;
    }
    guard.drop_garbage();
    if (!light_.empty()) return;
    light_sleeping_ = true;
    if (polled_.empty()) {
        wake_light_.wait(guard.raw());
    } else {
        wake_light_.wait_for(guard.raw(), kValuePollInterval);
    }
    light_sleeping_ = false;
}

// One worker at a time looks for new work for a moment before it sleeps: programs that launch small kernels in a row
// are served without a wake-up for each.
void Scheduler::sleep_kernel(Guard& guard) {
    if (!spinning_) {
        spinning_ = true;
        const std::uint32_t seen = offers_.load(std::memory_order_acquire);
        guard.unlock();
        spin_until(kWorkerSpinNs, [&] { return offers_.load(std::memory_order_acquire) != seen; });
        guard.lock();
        spinning_ = false;
    }
    guard.drop_garbage();
    if (!kernels_.empty() || !light_.empty()) return;
    ++sleeping_;
    wake_.wait(guard.raw());
    --sleeping_;
}

void Scheduler::call_hosts() {
    forbid_calls_on_this_thread();
    Guard guard(*this);
    while (true) {
        if (hosts_.empty()) {
            guard.drop_garbage();
            if (hosts_.empty()) wake_host_.wait(guard.raw());
            continue;
        }
        HostFunctionOperation& operation = *hosts_.front();
        hosts_.pop_front();
        Ref<Stream> stream = operation.stream;
        guard.unlock();
        stream->context().output.flush();
        const CUresult status = stream->context().status();
        if (operation.callback != nullptr) {
            operation.callback(operation.stream_handle, status, operation.data);
        } else if (status == CUDA_SUCCESS) {
            operation.function(operation.data);
        }
        guard.lock();
        finish_and_go_on(*stream);
        guard.unlock();
        stream = nullptr;
        guard.lock();
    }
}

}  // namespace weft::swdriver
