// The queues. An operation at the head of its stream is started as soon as nothing it must follow is outstanding
// (advance); its end (finish_head) makes other heads worth a look, which drain() takes from a list so that chains of
// streams need no recursion.
#include "swgpu/driver/scheduler.h"

#include <time.h>

#include <algorithm>

#include "swgpu/driver/context.h"
#include "swgpu/driver/faults.h"
#include "swgpu/driver/scheduler_guard.h"

namespace weft::swdriver {
namespace {

constexpr std::uint64_t kWaitSpinNs = 30'000;

}  // namespace

std::uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

bool WaitValueOperation::satisfied() const {
    const std::uint64_t seen = wide
                                   ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_ACQUIRE)
                                   : __atomic_load_n(reinterpret_cast<const std::uint32_t*>(address), __ATOMIC_ACQUIRE);
    switch (flags & 3) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            return wide ? static_cast<std::int64_t>(seen - value) >= 0
                        : static_cast<std::int32_t>(static_cast<std::uint32_t>(seen - value)) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ: return seen == value;
        case CU_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
        default: return (~(seen | value) & (wide ? ~0ull : 0xffffffffull)) != 0;
    }
}

// Called by the API.

std::uint64_t Scheduler::enqueue(Stream& stream, std::unique_ptr<Operation> operation, bool inline_if_idle) {
    Guard guard(*this);
    bool run_inline = inline_if_idle;
    const std::uint64_t sequence = append(stream, std::move(operation), guard, &run_inline);
    if (run_inline) {
        auto* work = static_cast<WorkOperation*>(stream.head);
        guard.unlock();
        const CUresult result = work->run();
        if (result != CUDA_SUCCESS)
            report_failure(stream.context(), result, "a copy or fill met an address that is no longer valid");
        guard.lock();
        finish_and_go_on(stream);
    }
    return sequence;
}

bool Scheduler::may_start(Stream& stream) {
    std::lock_guard lock(mutex_);
    if (stream.head != nullptr) return false;
    const auto& busy = stream.context().busy;
    return std::none_of(busy.begin(), busy.end(), [&](const Stream* other) { return orders(stream, *other); });
}

void Scheduler::record(Stream& stream, Event& event) {
    Ref<Marker> marker(new Marker);
    Ref<Marker> previous;  // ends after the lock
    Guard guard(*this);
    wait_for_room(stream, guard);  // before the event changes: whoever sees the new record must be able to wait for it
    previous = std::exchange(event.marker, marker);
    marker->stream = Ref<Stream>(&stream);
    auto operation = std::make_unique<RecordOperation>(marker);
    add_dependencies(stream, *operation);
    if (stream.head == nullptr && operation->after.empty()) {
        marker->sequence = stream.completed.load(std::memory_order_relaxed);
        finish_record(*marker);
        return;
    }
    marker->sequence = append(stream, std::move(operation), guard, nullptr);
}

void Scheduler::wait_event(Stream& stream, Event& event) {
    Ref<Marker> marker;
    Guard guard(*this);
    marker = event.marker;
    if (!marker || marker->done.load(std::memory_order_acquire) || marker->stream.get() == &stream) return;
    append(stream, std::make_unique<WaitEventOperation>(marker), guard, nullptr);
}

Ref<Marker> Scheduler::last_record(Event& event) {
    std::lock_guard lock(mutex_);
    return event.marker;
}

std::vector<Ref<Stream>> Scheduler::busy_streams(Context& context) {
    std::lock_guard lock(mutex_);
    return {context.busy.begin(), context.busy.end()};
}

void Scheduler::wait(Stream& stream, std::uint64_t sequence) {
    auto reached = [&] { return stream.completed.load(std::memory_order_acquire) >= sequence; };
    if (reached()) return;
    if ((stream.context().flags.load(std::memory_order_relaxed) & CU_CTX_SCHED_BLOCKING_SYNC) == 0 &&
        spin_until(kWaitSpinNs, reached))
        return;
    while (true) {
        const std::uint32_t tick = stream.tick.load(std::memory_order_acquire);
        if (reached()) return;
        stream.tick.wait(tick, std::memory_order_acquire);
    }
}

// All below: lock held.

std::uint64_t Scheduler::append(Stream& stream, std::unique_ptr<Operation> operation, Guard& guard, bool* run_inline) {
    wait_for_room(stream, guard);
    if (operation->after.empty()) add_dependencies(stream, *operation);
    const std::uint64_t sequence = stream.enqueued.load(std::memory_order_relaxed) + 1;
    operation->sequence = sequence;
    stream.enqueued.store(sequence, std::memory_order_release);
    Operation* added = operation.release();
    const bool was_idle = stream.head == nullptr;
    (was_idle ? stream.head : stream.tail->next) = added;
    stream.tail = added;
    if (was_idle) stream.context().busy.push_back(&stream);
    if (run_inline != nullptr) {
        *run_inline = *run_inline && was_idle && added->after.empty() && stream.context().status() == CUDA_SUCCESS;
        if (*run_inline) stream.active = true;
    }
    if (was_idle && !stream.active) {
        advance(stream);
        drain();
    }
    return sequence;
}

void Scheduler::wait_for_room(Stream& stream, Guard& guard) {
    while (true) {
        const std::uint64_t enqueued = stream.enqueued.load(std::memory_order_relaxed);
        if (enqueued - stream.completed.load(std::memory_order_relaxed) < kStreamOperations) return;
        guard.unlock();
        wait(stream, enqueued - kStreamOperations /
                                    2);  // room for many, so that a full queue does not cost a wake-up per operation
        guard.lock();
    }
}

// The legacy default stream follows, and is followed by, all work of the context's blocking streams.
bool Scheduler::orders(const Stream& stream, const Stream& other) {
    if (stream.role() == Stream::Role::legacy) return other.role() == Stream::Role::blocking;
    return stream.role() == Stream::Role::blocking && other.role() == Stream::Role::legacy;
}

void Scheduler::add_dependencies(Stream& stream, Operation& operation) {
    for (Stream* other : stream.context().busy) {
        if (orders(stream, *other)) {
            operation.after.push_back({Ref<Stream>(other), other->enqueued.load(std::memory_order_relaxed)});
        }
    }
}

void Scheduler::drain() {
    while (!unblocked_.empty()) {
        Ref<Stream> stream = std::move(unblocked_.back());
        unblocked_.pop_back();
        if (!stream->active) advance(*stream);
    }
}

// Starts the head of the stream, and ends those that take no time, until something has to be waited for.
void Scheduler::advance(Stream& stream) {
    while (stream.head != nullptr && !stream.active) {
        Operation& operation = *stream.head;
        if (stream.context().status() != CUDA_SUCCESS && !operation.runs_after_error) {
            finish_head(stream);
            continue;
        }
        if (blocked_by_dependency(stream, operation)) return;
        if (!start(stream, operation)) return;
        finish_head(stream);
    }
}

bool Scheduler::blocked_by_dependency(Stream& stream, Operation& operation) {
    while (!operation.after.empty()) {
        const Dependency& dependency = operation.after.back();
        if (dependency.stream->completed.load(std::memory_order_relaxed) < dependency.sequence) {
            dependency.stream->dependents.push_back(Ref<Stream>(&stream));
            return true;
        }
        operation.after.pop_back();
    }
    return false;
}

// True if the operation is over already.
bool Scheduler::start(Stream& stream, Operation& operation) {
    switch (operation.type) {
        case Operation::Type::record: finish_record(*static_cast<RecordOperation&>(operation).marker); return true;
        case Operation::Type::wait_event: {
            Marker& marker = *static_cast<WaitEventOperation&>(operation).marker;
            if (marker.done.load(std::memory_order_relaxed)) return true;
            marker.waiting.push_back(Ref<Stream>(&stream));
            return false;
        }
        case Operation::Type::wait_value:
            if (static_cast<WaitValueOperation&>(operation).satisfied()) return true;
            polled_.push_back(Ref<Stream>(&stream));
            break;
        case Operation::Type::work: light_.push_back(Ref<Stream>(&stream)); break;
        case Operation::Type::host_function:
            hosts_.push_back(static_cast<HostFunctionOperation*>(&operation));
            stream.active = true;
            start_host_thread();
            wake_host_.notify_one();
            return false;
        case Operation::Type::kernel: {
            auto& kernel = static_cast<KernelOperation&>(operation);
            stream.active = true;
            running_.push_back(&kernel);
            start_threads();
            offer_kernel(kernel, stream.priority() < 0);
            wake_kernel_worker();
            return false;
        }
    }
    stream.active = true;
    start_threads();
    wake_light();
    return false;
}

void Scheduler::finish_record(Marker& marker) {
    marker.time_ns = now_ns();
    marker.done.store(true, std::memory_order_release);
    for (Ref<Stream>& stream : marker.waiting) unblocked_.push_back(std::move(stream));
    marker.waiting.clear();
}

void Scheduler::finish_head(Stream& stream) {
    Operation* operation = stream.head;
    if (operation->type == Operation::Type::record && !static_cast<RecordOperation*>(operation)->marker->done) {
        finish_record(*static_cast<RecordOperation*>(operation)->marker);
    }
    stream.head = operation->next;
    stream.active = false;
    if (stream.head == nullptr) {
        stream.tail = nullptr;
        auto& busy = stream.context().busy;
        busy.erase(std::find(busy.begin(), busy.end(), &stream));
    }
    stream.completed.fetch_add(1, std::memory_order_acq_rel);
    stream.tick.fetch_add(1, std::memory_order_acq_rel);
    stream.tick.notify_all();
    for (Ref<Stream>& dependent : stream.dependents) unblocked_.push_back(std::move(dependent));
    stream.dependents.clear();
    garbage_.emplace_back(operation);
}

void Scheduler::finish_and_go_on(Stream& stream) {
    finish_head(stream);
    advance(stream);
    drain();
}

}  // namespace weft::swdriver
