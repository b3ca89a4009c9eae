#include "shim/current.h"

#include <pthread.h>

#include <array>
#include <cstdlib>

#include "shim/runtime.h"

namespace weft::shim {
namespace {

constexpr int kMaxDepth = 64;

struct ThreadStack {
    std::array<Context*, kMaxDepth> contexts;
    int depth;
};
thread_local ThreadStack t_stack{};

// The calling thread's default streams, one per context it used them in. Freed by the key's destructor when the thread
// ends.
struct ThreadStreams {
    static constexpr int kMax = 64;
    int count;
    std::array<std::uint32_t, kMax> contexts;  // numbers, which are never used twice
    std::array<std::uint64_t, kMax> streams;   // handles
};
thread_local ThreadStreams* t_streams = nullptr;

void end_thread_streams(void* data) {
    auto* streams = static_cast<ThreadStreams*>(data);
    Runtime* runtime = Runtime::get();
    for (int i = 0; runtime != nullptr && i < streams->count; ++i)
        if (Stream* stream = runtime->streams.find(streams->streams[static_cast<std::size_t>(i)]))
            runtime->close_stream(*stream);
    std::free(data);
}

ThreadStreams* thread_streams() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, &end_thread_streams);
        return made;
    }();
    if (t_streams != nullptr) return t_streams;
    t_streams = static_cast<ThreadStreams*>(std::calloc(1, sizeof(ThreadStreams)));
    if (t_streams != nullptr) pthread_setspecific(key, t_streams);
    return t_streams;
}

CUresult per_thread_stream(Context& context, Stream** stream) {
    ThreadStreams* mine = thread_streams();
    if (mine == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Runtime& runtime = *Runtime::get();
    for (int i = 0; i < mine->count; ++i) {
        if (mine->contexts[static_cast<std::size_t>(i)] != context.number) continue;
        *stream = runtime.streams.find(mine->streams[static_cast<std::size_t>(i)]);
        if (*stream != nullptr) return CUDA_SUCCESS;
    }
    if (mine->count == ThreadStreams::kMax) mine->count = 0;  // long gone contexts: start over
    std::shared_ptr<Stream> made;
    if (const CUresult opened = runtime.open_stream(context, CU_STREAM_DEFAULT, 0, &made); opened != CUDA_SUCCESS)
        return opened;
    mine->contexts[static_cast<std::size_t>(mine->count)] = context.number;
    mine->streams[static_cast<std::size_t>(mine->count++)] = made->handle;
    *stream = made.get();
    return CUDA_SUCCESS;
}

}  // namespace

Context* current_context() {
    return t_stack.depth > 0 ? t_stack.contexts[static_cast<std::size_t>(t_stack.depth - 1)] : nullptr;
}

void set_current_context(Context* context) {
    if (context == nullptr) {
        if (t_stack.depth > 0) --t_stack.depth;
        return;
    }
    if (t_stack.depth == 0) t_stack.depth = 1;
    t_stack.contexts[static_cast<std::size_t>(t_stack.depth - 1)] = context;
}

CUresult push_context(Context* context) {
    if (t_stack.depth == kMaxDepth) return CUDA_ERROR_OUT_OF_MEMORY;
    t_stack.contexts[static_cast<std::size_t>(t_stack.depth++)] = context;
    return CUDA_SUCCESS;
}

Context* pop_context() {
    return t_stack.depth > 0 ? t_stack.contexts[static_cast<std::size_t>(--t_stack.depth)] : nullptr;
}

CUresult usable_context(Context** context) {
    *context = current_context();
    if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (Runtime::get()->session().is_lost()) [[unlikely]]
        return Session::kLost;
    if (!(*context)->active.load(std::memory_order_relaxed)) [[unlikely]]
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return take_error(**context);
}

CUresult find_stream(Context& context, CUstream handle, Stream** stream) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    if (value == 0 || value == 1) {  // CU_STREAM_LEGACY is 1
        *stream = &context.legacy;
        return CUDA_SUCCESS;
    }
    if (value == 2) return per_thread_stream(context, stream);  // CU_STREAM_PER_THREAD
    *stream = Runtime::get()->streams.find(handle);
    return *stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace weft::shim
