// Contexts: primary ones are retained and released by count, explicit ones are made and destroyed; the current one is a
// matter of the calling thread. Only making, ending, synchronising and limits concern the executor.
#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUcontext handle_of(const Context* context) {
    return context != nullptr ? reinterpret_cast<CUcontext>(context->handle) : nullptr;
}

// The context of a handle; null means the current one.
CUresult find_context(CUcontext handle, Context** context) {
    *context = handle != nullptr ? Runtime::get()->contexts.find(handle) : current_context();
    if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if ((*context)->active) return CUDA_SUCCESS;
    return handle != nullptr && !(*context)->primary ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::shared_ptr<Context> make_context(Device& device, unsigned flags, bool primary) {
    auto context = std::make_shared<Context>();
    context->device = &device;
    context->flags = flags;
    context->primary = primary;
    context->handle = Runtime::get()->contexts.insert(context);
    context->id = Runtime::get()->next_number();
    return context;
}

CUresult find_device(CUdevice ordinal, Device** device) {
    *device = Runtime::get()->device(ordinal);
    return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    std::lock_guard lock(device->primary_mutex);
    if (!device->primary) device->primary = make_context(*device, device->primary_flags, true);
    if (!device->primary->active) {
        device->primary->flags = device->primary_flags;
        if (const CUresult opened = Runtime::get()->open_context(device->primary); opened != CUDA_SUCCESS)
            return opened;
    }
    ++device->primary_retained;
    *context = handle_of(device->primary.get());
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    std::lock_guard lock(device->primary_mutex);
    if (device->primary_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_retained == 0) Runtime::get()->close_context(*device->primary, false);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    std::lock_guard lock(device->primary_mutex);
    if (device->primary && device->primary->active) Runtime::get()->close_context(*device->primary, true);
    device->primary_retained = 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    std::lock_guard lock(device->primary_mutex);
    if (flags != nullptr) *flags = device->primary_flags;
    if (active != nullptr) *active = device->primary && device->primary->active ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->primary_mutex);
    device->primary_flags = flags;
    if (device->primary) device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* handle, unsigned int flags, CUdevice ordinal) {
    Device* device;
    if (const CUresult result = find_device(ordinal, &device); result != CUDA_SUCCESS) return result;
    if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto context = make_context(*device, flags, false);
    if (context->handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult opened = Runtime::get()->open_context(context); opened != CUDA_SUCCESS) return opened;
    *handle = handle_of(context.get());
    return push_context(context.get());
}

CUresult cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam* parameters, int count, unsigned int flags,
                        CUdevice ordinal) {
    if (count != 0 || parameters != nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return cuCtxCreate_v2(handle, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext* handle, CUctxCreateParams* parameters, unsigned int flags, CUdevice ordinal) {
    if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(handle, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) return result;
    if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (current_context() == context) (void)pop_context();
    Runtime::get()->close_context(*context, false);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context* context;
    const CUresult result = find_context(handle, &context);
    return result == CUDA_SUCCESS ? push_context(context) : result;
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
    Context* context = pop_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (handle != nullptr) *handle = handle_of(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    if (handle == nullptr) {
        set_current_context(nullptr);
        return CUDA_SUCCESS;
    }
    Context* context;
    if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) return result;
    set_current_context(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
    *handle = handle_of(current_context());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    Context* context;
    if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) return result;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
    Context* context;
    if (const CUresult result = find_context(nullptr, &context); result != CUDA_SUCCESS) return result;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
    Context* context;
    if (const CUresult result = find_context(nullptr, &context); result != CUDA_SUCCESS) return result;
    if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    Context* context;
    if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) return result;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    Context* context;
    if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) return result;
    *version = 3020;  // that of contexts made by the _v2 calls and later
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    Context* context;
    if (const CUresult result = find_context(nullptr, &context); result != CUDA_SUCCESS) return result;
    if (least != nullptr) *least = context->device->info.stream_priority_least;
    if (greatest != nullptr) *greatest = context->device->info.stream_priority_greatest;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
    Context* context;
    if (handle == nullptr) {
        if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    } else if (const CUresult result = find_context(handle, &context); result != CUDA_SUCCESS) {
        return result;
    }
    if (graph::is_any_capturing()) [[unlikely]] {
        if (const CUresult refused = graph::check_legacy_use(context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            refused != CUDA_SUCCESS)
            return refused;
    }
    Runtime& runtime = *Runtime::get();
    ReadAhead::Range ahead = context->read_ahead.wanted();
    // The program may write unified memory without a call.
    if (!is_device_range(ahead.source, ahead.size_bytes) || runtime.unified().find(ahead.source)) ahead = {};
    std::uint64_t work = 0;
    const Reply reply = runtime.session().call<wire::CtxSync>(context->number, 0, [&](auto& frame, std::byte*) {
        frame.read_source = ahead.source;
        frame.read_bytes = ahead.size_bytes;
        work = runtime.progress().submitted();
    });
    runtime.output().write();
    if (reply.status != CUDA_SUCCESS) return settle(*context, reply.status);
    if (runtime.is_only_context()) runtime.progress().complete(work);
    context->read_ahead.synchronised(work, ahead, reply.tail);
    return take_error(*context);
}

CUresult cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

}  // namespace weft::shim::api
