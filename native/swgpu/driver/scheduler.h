// Executes the operations of all streams on a few worker threads. One lock guards all queues; it is held for
// bookkeeping only, never while an operation runs. Kernels advance in steps, so none can keep another stream's work
// from running. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "swgpu/driver/stream.h"

namespace weft::swdriver {

inline constexpr std::uint64_t kStreamOperations = 1024;  // enqueue waits while a stream holds this many

std::uint64_t now_ns();

class Scheduler {
  public:
    explicit Scheduler(int threads) : threads_(threads) {}

    // Takes the operation. `inline_if_idle`: a WorkOperation of an idle stream is run by the caller instead, before
    // this returns. Returns the operation's sequence number in the stream.
    std::uint64_t enqueue(Stream& stream, std::unique_ptr<Operation> operation, bool inline_if_idle = false);
    // True if an operation that is enqueued now has nothing to wait for.
    bool may_start(Stream& stream);
    // Records the event; `marker` becomes its last record.
    void record(Stream& stream, Event& event);
    // Later work of the stream waits for the event's last record.
    void wait_event(Stream& stream, Event& event);
    Ref<Marker> last_record(Event& event);
    std::vector<Ref<Stream>> busy_streams(Context& context);
    // Ends the kernels of a context that has failed; its queued operations are dropped as they come up.
    void cancel(Context& context);

    void wait(Stream& stream, std::uint64_t sequence);
    void wait_idle(Stream& stream) { wait(stream, stream.enqueued.load(std::memory_order_acquire)); }

  private:
    class Guard;
    friend class Guard;

    std::uint64_t append(Stream& stream, std::unique_ptr<Operation> operation, Guard& guard, bool* run_inline);
    void wait_for_room(Stream& stream, Guard& guard);
    void add_dependencies(Stream& stream, Operation& operation);
    static bool orders(const Stream& stream, const Stream& other);
    void advance(Stream& stream);
    void drain();
    bool blocked_by_dependency(Stream& stream, Operation& operation);
    bool start(Stream& stream, Operation& operation);
    void finish_head(Stream& stream);
    void finish_and_go_on(Stream& stream);
    void finish_record(Marker& marker);

    void offer_kernel(KernelOperation& kernel, bool first);
    void wake_kernel_worker();
    void wake_light();

    void start_threads();
    void start_host_thread();
    void work(bool light_only);
    bool run_light(Guard& guard);
    bool run_kernel(Guard& guard, engine::Worker& worker);
    void end_kernel(KernelOperation& kernel, Guard& guard);
    void poll_values();
    void sleep_light(Guard& guard);
    void sleep_kernel(Guard& guard);
    void call_hosts();

    const int threads_;
    std::mutex mutex_;
    bool started_ = false, host_started_ = false;
    std::vector<Ref<Stream>> unblocked_;               // heads to look at again
    std::vector<std::unique_ptr<Operation>> garbage_;  // destroyed by whoever unlocks
    std::deque<Ref<Stream>> light_;                    // streams whose head is a WorkOperation
    std::deque<KernelOperation*> kernels_;             // kernels with a step to offer, next first
    std::vector<KernelOperation*> running_;            // all kernels that have started
    std::vector<Ref<Stream>> polled_;                  // streams whose head waits for a value in memory
    std::deque<HostFunctionOperation*> hosts_;
    std::atomic<std::uint32_t> offers_{0};  // moves when there is something new to do; a spinning worker watches it
    bool spinning_ = false;                 // at most one worker spins
    unsigned sleeping_ = 0;                 // workers that take kernels
    bool light_sleeping_ = false;
    std::condition_variable wake_;
    std::condition_variable wake_light_;
    std::condition_variable wake_host_;
};

}  // namespace weft::swdriver
