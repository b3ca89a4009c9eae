// A CUDA context: the legacy default stream, limits, the first sticky error, and everything that dies with it.
// Also the per-thread state: stack of current contexts and per-thread default streams. Design note:
// docs/design/software-gpu-driver.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gen/cuda_abi.h"
#include "swgpu/driver/object.h"
#include "swgpu/driver/output.h"
#include "swgpu/driver/stream.h"

namespace weft::swdriver {

class Context final : public Object {
  public:
    static constexpr Kind kKind = Kind::context;
    Context(int device, unsigned flags, bool primary, unsigned api_version);

    int device() const { return device_; }
    bool primary() const { return primary_; }
    unsigned api_version() const { return api_version_; }
    std::uint64_t id() const { return id_; }
    std::atomic<unsigned> flags;

    // CUDA_SUCCESS, the first error of an asynchronous operation, or CONTEXT_IS_DESTROYED.
    CUresult status() const { return static_cast<CUresult>(status_.load(std::memory_order_acquire)); }
    // True if this is the first error.
    bool fail(CUresult error);
    void mark_destroyed() { status_.store(CUDA_ERROR_CONTEXT_IS_DESTROYED, std::memory_order_release); }

    // The legacy default stream. Made right after the context; taken away when it is destroyed.
    Ref<Stream> legacy_stream();
    std::uint64_t next_stream_id() { return stream_ids_.fetch_add(1, std::memory_order_relaxed); }
    void add_object(Object& object);  // streams, events, modules: closed when the context is destroyed
    void forget_object(Object& object);
    std::vector<Ref<Object>> take_objects();

    bool get_limit(CUlimit limit, std::size_t* value);
    bool set_limit(CUlimit limit, std::size_t value);
    std::atomic<int> cache_config{0};
    std::atomic<int> shared_config{1};

    DeviceOutput output;  // of its kernels

    // Streams with unfinished operations; under the scheduler's lock.
    std::vector<Stream*> busy;

  private:
    const int device_;
    const bool primary_;
    const unsigned api_version_;
    const std::uint64_t id_;
    std::atomic<int> status_{CUDA_SUCCESS};
    std::atomic<std::uint64_t> stream_ids_{1};
    std::mutex mutex_;  // of what follows
    Ref<Stream> legacy_;
    std::unordered_map<Object*, Ref<Object>> objects_;
    std::array<std::size_t, CU_LIMIT_MAX> limits_{};
};

// The state of the calling thread.
namespace thread_state {

Ref<Context> current();                  // null: none
bool push(Ref<Context> context);         // false: the stack is full
Ref<Context> pop();                      // null: empty
bool set_current(Ref<Context> context);  // replaces the top; null pops it
// The blocking stream that stands for CU_STREAM_PER_THREAD in this thread and context.
Ref<Stream> default_stream(Context& context);

}  // namespace thread_state

}  // namespace weft::swdriver
