// Start-up, fork, and what all groups of calls share.
#include "swgpu/driver/driver.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "driver/symbols.h"
#include "swgpu/driver/log.h"
#include "swgpu/driver/memory.h"
#include "swgpu/driver/module.h"

extern "C" int weft_unsupported(const char* name) {
    // Each name once; a set of flags would need the table of names, and few are ever called.
    static std::mutex& mutex = *new std::mutex;
    static auto& seen = *new std::vector<std::string>;
    {
        std::lock_guard lock(mutex);
        for (const std::string& known : seen) {
            if (known == name) return CUDA_ERROR_NOT_SUPPORTED;
        }
        seen.emplace_back(name);
    }
    weft::swdriver::log_message(weft::swdriver::LogLevel::warning,
                                std::string(name) + " is not supported by this driver");
    return CUDA_ERROR_NOT_SUPPORTED;
}

namespace weft::swdriver {
namespace {

std::atomic<Driver*> instance{nullptr};
std::atomic<bool> forked{false};

// The worker threads do not exist in a child, and its parent's locks may be held: the driver is closed there.
void after_fork_in_child() {
    if (instance.load(std::memory_order_relaxed) != nullptr) forked.store(true, std::memory_order_relaxed);
}

}  // namespace

Driver::Driver(Settings read) : settings(std::move(read)), scheduler(settings.threads) {
    for (int i = 0; i < settings.device_count; ++i) devices.push_back(std::make_unique<Device>(i, settings));
}

Driver* driver_if_ready() {
    if (forked.load(std::memory_order_relaxed)) return nullptr;
    return instance.load(std::memory_order_acquire);
}

CUresult initialize(unsigned flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (forked.load(std::memory_order_relaxed)) return CUDA_ERROR_NOT_INITIALIZED;
    if (instance.load(std::memory_order_acquire) != nullptr) return CUDA_SUCCESS;
    static std::mutex& mutex = *new std::mutex;
    std::lock_guard lock(mutex);
    if (instance.load(std::memory_order_acquire) == nullptr) {
        pthread_atfork(nullptr, nullptr, after_fork_in_child);
        instance.store(new Driver(read_settings()), std::memory_order_release);
    }
    return CUDA_SUCCESS;
}

namespace {
thread_local bool calls_are_forbidden = false;
}

void forbid_calls_on_this_thread() { calls_are_forbidden = true; }

CUresult check_ready() {
    if (calls_are_forbidden) return CUDA_ERROR_NOT_PERMITTED;
    return driver_if_ready() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

Entry enter() {
    Entry entry;
    entry.error = check_ready();
    if (entry.error != CUDA_SUCCESS) return entry;
    entry.context = thread_state::current();
    entry.error = entry.context ? entry.context->status() : CUDA_ERROR_INVALID_CONTEXT;
    return entry;
}

CUresult resolve_stream(const Entry& entry, CUstream handle, Ref<Stream>* stream) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY) {
        *stream = entry.context->legacy_stream();
    } else if (handle == CU_STREAM_PER_THREAD) {
        *stream = thread_state::default_stream(*entry.context);
    } else {
        *stream = find<Stream>(handle);
        if (!*stream) return CUDA_ERROR_INVALID_HANDLE;
        return (*stream)->context().status();
    }
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult check_captures(Stream& stream) {
    if (!graph::is_any_capturing() || stream.role() != Stream::Role::legacy) return CUDA_SUCCESS;
    return graph::check_legacy_use(&stream.context());
}

CUresult refuse_while_capturing(Stream& stream) {
    if (stream.is_capturing()) return graph::refuse_capture(stream.capturing);
    return check_captures(stream);
}

Device* find_device(CUdevice device) {
    if (device < 0 || static_cast<std::size_t>(device) >= driver().devices.size()) return nullptr;
    return driver().devices[static_cast<std::size_t>(device)].get();
}

void synchronize(Context& context) {
    Scheduler& scheduler = driver().scheduler;
    for (const Ref<Stream>& stream : scheduler.busy_streams(context)) scheduler.wait_idle(*stream);
    context.output.flush();
}

void destroy_context(Context& context) {
    synchronize(context);
    context.mark_destroyed();
    driver().scheduler.cancel(context);
    synchronize(context);
    for (const Ref<Object>& object : context.take_objects()) {
        if (object->kind() == Kind::module) static_cast<Module*>(object.get())->close();
        if (object->handle() != 0) HandleTable::instance().remove(object->handle(), object->kind());
    }
    const std::uint64_t id = context.id();
    for (const Allocation& allocation : driver().space.of_context(id)) free_allocation(allocation);
    if (context.handle() != 0) HandleTable::instance().remove(context.handle(), Kind::context);
}

}  // namespace weft::swdriver
