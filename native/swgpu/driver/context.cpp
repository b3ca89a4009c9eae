// The per-thread part is plain memory behind a pthread key: thread_local objects with destructors would be gone when
// exit handlers of the main thread call the driver.
#include "swgpu/driver/context.h"

#include <pthread.h>

#include <algorithm>

namespace weft::swdriver {
namespace {

std::atomic<std::uint64_t> next_context_id{1};
constexpr std::size_t kStackDepth = 1024;

struct ThreadBlock {
    std::vector<Ref<Context>> stack;
    std::vector<Ref<Stream>> default_streams;  // one per context used
};

thread_local ThreadBlock* block_of_thread = nullptr;

void end_of_thread(void* value) {
    block_of_thread = nullptr;
    delete static_cast<ThreadBlock*>(value);
}

ThreadBlock& thread_block() {
    if (block_of_thread == nullptr) {
        static const pthread_key_t key = [] {
            pthread_key_t made;
            pthread_key_create(&made, end_of_thread);
            return made;
        }();
        block_of_thread = new ThreadBlock;
        pthread_setspecific(key, block_of_thread);
    }
    return *block_of_thread;
}

}  // namespace

Context::Context(int device, unsigned context_flags, bool primary, unsigned api_version)
    : Object(kKind),
      flags(context_flags),
      device_(device),
      primary_(primary),
      api_version_(api_version),
      id_(next_context_id++) {
    limits_[CU_LIMIT_STACK_SIZE] = 1024;
    limits_[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    limits_[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    limits_[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    limits_[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    limits_[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

bool Context::fail(CUresult error) {
    int expected = CUDA_SUCCESS;
    return status_.compare_exchange_strong(expected, error, std::memory_order_acq_rel);
}

Ref<Stream> Context::legacy_stream() {
    std::lock_guard lock(mutex_);
    if (!legacy_ && status() == CUDA_SUCCESS) {
        legacy_ = Ref<Stream>(new Stream(Ref<Context>(this), Stream::Role::legacy, 0, 0, next_stream_id()));
    }
    return legacy_;
}

void Context::add_object(Object& object) {
    std::lock_guard lock(mutex_);
    objects_.emplace(&object, Ref<Object>(&object));
}

void Context::forget_object(Object& object) {
    Ref<Object> kept;  // the last reference ends outside the lock
    std::lock_guard lock(mutex_);
    auto found = objects_.find(&object);
    if (found == objects_.end()) return;
    kept = std::move(found->second);
    objects_.erase(found);
}

std::vector<Ref<Object>> Context::take_objects() {
    Ref<Stream> legacy;
    std::lock_guard lock(mutex_);
    legacy = std::move(legacy_);
    std::vector<Ref<Object>> taken;
    for (auto& [object, reference] : objects_) taken.push_back(std::move(reference));
    objects_.clear();
    return taken;
}

bool Context::get_limit(CUlimit limit, std::size_t* value) {
    if (static_cast<unsigned>(limit) >= limits_.size() || limits_[static_cast<std::size_t>(limit)] == 0) {
        if (limit != CU_LIMIT_PERSISTING_L2_CACHE_SIZE) return false;
    }
    std::lock_guard lock(mutex_);
    *value = limits_[static_cast<std::size_t>(limit)];
    return true;
}

bool Context::set_limit(CUlimit limit, std::size_t value) {
    std::size_t present = 0;
    if (!get_limit(limit, &present)) return false;
    std::lock_guard lock(mutex_);
    if (limit == CU_LIMIT_STACK_SIZE) value = std::clamp<std::size_t>((value + 15) & ~std::size_t{15}, 256, 512 << 10);
    limits_[static_cast<std::size_t>(limit)] = value;
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) output.set_limit(value);
    return true;
}

Stream::Stream(Ref<Context> context, Role role, unsigned flags, int priority, std::uint64_t id)
    : Object(kKind), context_(std::move(context)), role_(role), flags_(flags), priority_(priority), id_(id) {}

Stream::~Stream() = default;

Event::Event(Ref<Context> context, unsigned flags) : Object(kKind), context_(std::move(context)), flags_(flags) {}

Event::~Event() = default;

namespace thread_state {

Ref<Context> current() {
    if (block_of_thread == nullptr || block_of_thread->stack.empty()) return {};
    return block_of_thread->stack.back();
}

bool push(Ref<Context> context) {
    auto& stack = thread_block().stack;
    if (stack.size() >= kStackDepth) return false;
    stack.push_back(std::move(context));
    return true;
}

Ref<Context> pop() {
    auto& stack = thread_block().stack;
    if (stack.empty()) return {};
    Ref<Context> top = std::move(stack.back());
    stack.pop_back();
    return top;
}

bool set_current(Ref<Context> context) {
    if (block_of_thread == nullptr && !context) return true;
    auto& stack = thread_block().stack;
    if (!context) {
        if (!stack.empty()) stack.pop_back();
    } else if (stack.empty()) {
        stack.push_back(std::move(context));
    } else {
        stack.back() = std::move(context);
    }
    return true;
}

Ref<Stream> default_stream(Context& context) {
    auto& streams = thread_block().default_streams;
    std::erase_if(streams, [](const Ref<Stream>& stream) {
        return stream->context().status() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    });
    for (const Ref<Stream>& stream : streams) {
        if (&stream->context() == &context) return stream;
    }
    Ref<Stream> made(new Stream(Ref<Context>(&context), Stream::Role::blocking, 0, 0, context.next_stream_id()));
    streams.push_back(made);
    return made;
}

}  // namespace thread_state

}  // namespace weft::swdriver
