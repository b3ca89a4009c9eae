// Contexts: explicit and primary ones, the stack of the calling thread, and settings of the current context.
#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;
constexpr unsigned kContextFlags = CU_CTX_FLAGS_MASK;
constexpr unsigned kApiVersion = 3020;

bool valid_flags(unsigned flags) {
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;
    const bool one_schedule = (schedule & (schedule - 1)) == 0;
    return (flags & ~kContextFlags) == 0 && one_schedule;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice number) {
    WEFT_TRY(check_ready());
    if (out == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (find_device(number) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Ref<Context> context(new Context(number, flags, false, kApiVersion));
    HandleTable::instance().insert(context.get());
    if (!thread_state::push(context)) {
        destroy_context(*context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = context->handle_as<CUcontext>();
    return CUDA_SUCCESS;
}

// A context named by its handle; null means the current one where the call allows it.
CUresult named(CUcontext handle, Ref<Context>* context) {
    WEFT_TRY(check_ready());
    *context = handle != nullptr ? find<Context>(handle) : thread_state::current();
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

WEFT_API CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
    return create(out, flags, device);
}

WEFT_API CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int count, unsigned int flags, CUdevice device) {
    if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device);
}

WEFT_API CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
    if (parameters != nullptr && parameters->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return create(out, flags, device);
}

WEFT_API CUresult cuCtxDestroy_v2(CUcontext handle) {
    WEFT_TRY(check_ready());
    Ref<Context> context = find<Context>(handle);
    if (!context || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
    if (thread_state::current() == context) thread_state::pop();
    destroy_context(*context);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    WEFT_TRY(check_ready());
    Ref<Context> context = find<Context>(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    return thread_state::push(std::move(context)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

WEFT_API CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    WEFT_TRY(check_ready());
    Ref<Context> context = thread_state::pop();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = context->handle_as<CUcontext>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxSetCurrent(CUcontext handle) {
    WEFT_TRY(check_ready());
    if (handle == nullptr) {
        thread_state::set_current({});
        return CUDA_SUCCESS;
    }
    Ref<Context> context = find<Context>(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    thread_state::set_current(std::move(context));
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetCurrent(CUcontext* out) {
    WEFT_TRY(check_ready());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Ref<Context> context = thread_state::current();
    *out = context ? context->handle_as<CUcontext>() : nullptr;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    Ref<Context> context;
    WEFT_TRY(named(handle, &context));
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }

WEFT_API CUresult cuCtxGetFlags(unsigned int* flags) {
    Ref<Context> context;
    WEFT_TRY(named(nullptr, &context));
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags.load();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxSetFlags(unsigned int flags) {
    WEFT_ENTER(entry);
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    entry->flags.store(flags);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    Ref<Context> context;
    WEFT_TRY(named(handle, &context));
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    Ref<Context> context;
    WEFT_TRY(named(handle, &context));
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
    const OutputPoint point;
    Ref<Context> context;
    WEFT_TRY(named(handle, &context));
    WEFT_TRY(context->status());
    if (weft::graph::is_any_capturing())
        WEFT_TRY(weft::graph::check_legacy_use(context.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    synchronize(*context);
    return context->status();
}

WEFT_API CUresult cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

WEFT_API CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    WEFT_ENTER(entry);
    if (value == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    return entry->get_limit(limit, value) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

WEFT_API CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    WEFT_ENTER(entry);
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    return entry->set_limit(limit, value) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

WEFT_API CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    WEFT_ENTER(entry);
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = static_cast<CUfunc_cache>(entry->cache_config.load());
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    WEFT_ENTER(entry);
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    entry->cache_config.store(config);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
    WEFT_ENTER(entry);
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = static_cast<CUsharedconfig>(entry->shared_config.load());
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    WEFT_ENTER(entry);
    if (config < 0 || config > 2) return CUDA_ERROR_INVALID_VALUE;
    if (config == CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE) config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    entry->shared_config.store(config);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    WEFT_ENTER(entry);
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxResetPersistingL2Cache() {
    WEFT_ENTER(entry);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    WEFT_ENTER(entry);
    const Ref<Context> other = find<Context>(peer);
    if (!other || other == entry.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (other->device() == entry->device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    WEFT_ENTER(entry);
    return find<Context>(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Primary contexts.

WEFT_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice number) {
    WEFT_TRY(check_ready());
    Device* device = find_device(number);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(device->primary_mutex);
    if (!device->primary) {
        device->primary = Ref<Context>(new Context(number, device->primary_flags, true, kApiVersion));
        HandleTable::instance().insert(device->primary.get());
    }
    ++device->primary_retained;
    *out = device->primary->handle_as<CUcontext>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice number) {
    WEFT_TRY(check_ready());
    Device* device = find_device(number);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(device->primary_mutex);
    if (device->primary_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_retained == 0 && device->primary) {
        destroy_context(*device->primary);
        device->primary = {};
    }
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDevicePrimaryCtxRelease(CUdevice number) { return cuDevicePrimaryCtxRelease_v2(number); }

// Everything in the context goes; those who retained it may release it later, or use it again after a retain.
WEFT_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice number) {
    WEFT_TRY(check_ready());
    Device* device = find_device(number);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(device->primary_mutex);
    if (device->primary) {
        destroy_context(*device->primary);
        device->primary = {};
    }
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDevicePrimaryCtxReset(CUdevice number) { return cuDevicePrimaryCtxReset_v2(number); }

WEFT_API CUresult cuDevicePrimaryCtxGetState(CUdevice number, unsigned int* flags, int* active) {
    WEFT_TRY(check_ready());
    Device* device = find_device(number);
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(device->primary_mutex);
    *flags = device->primary ? device->primary->flags.load() : device->primary_flags;
    *active = device->primary ? 1 : 0;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned int flags) {
    WEFT_TRY(check_ready());
    Device* device = find_device(number);
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(device->primary_mutex);
    device->primary_flags = flags;
    if (device->primary) device->primary->flags.store(flags);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice number, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(number, flags);
}
