// Operations of streams on words of memory, and stream attributes.
#include <cstring>

#include "swgpu/driver/api.h"

using namespace weft::swdriver;

namespace {

// Writes a word of device memory when the stream gets there.
struct WriteValueOperation final : WorkOperation {
    CUresult run() override {
        const std::uint64_t size = wide ? 8 : 4;
        if (!driver().space.accessible(address, size, true)) return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (wide) {
            __atomic_store_n(reinterpret_cast<std::uint64_t*>(address), value, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(reinterpret_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(value),
                             __ATOMIC_RELEASE);
        }
        return CUDA_SUCCESS;
    }
    std::uint64_t address = 0, value = 0;
    bool wide = false;
};

CUresult write_value(CUstream handle, CUdeviceptr address, std::uint64_t value, unsigned flags, bool wide) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const std::uint64_t size = wide ? 8 : 4;
    if ((flags & ~1u) != 0 || address % size != 0 || !driver().space.accessible(address, size, true))
        return CUDA_ERROR_INVALID_VALUE;
    auto operation = std::make_unique<WriteValueOperation>();
    operation->address = address;
    operation->value = value;
    operation->wide = wide;
    driver().scheduler.enqueue(*stream, std::move(operation), true);
    return CUDA_SUCCESS;
}

CUresult wait_value(CUstream handle, CUdeviceptr address, std::uint64_t value, unsigned flags, bool wide) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const std::uint64_t size = wide ? 8 : 4;
    const unsigned condition = flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
    if (condition > CU_STREAM_WAIT_VALUE_NOR || address % size != 0 ||
        !driver().space.accessible(address, size, false)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto operation = std::make_unique<WaitValueOperation>();
    operation->address = address;
    operation->value = value;
    operation->flags = condition;
    operation->wide = wide;
    driver().scheduler.enqueue(*stream, std::move(operation));
    return CUDA_SUCCESS;
}

CUresult run_one(CUstream stream, const CUstreamBatchMemOpParams& operation) {
    const auto& wait = operation.waitValue;
    const auto& write = operation.writeValue;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32: return wait_value(stream, wait.address, wait.value, wait.flags, false);
        case CU_STREAM_MEM_OP_WAIT_VALUE_64: return wait_value(stream, wait.address, wait.value64, wait.flags, true);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            return write_value(stream, write.address, write.value, write.flags, false);
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return write_value(stream, write.address, write.value64, write.flags, true);
        case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;  // operations of a stream are in order anyway
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

bool is_aligned(const CUstreamBatchMemOpParams& operation) {
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_32: return operation.waitValue.address % 4 == 0;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64: return operation.waitValue.address % 8 == 0;
        default: return true;
    }
}

CUresult find_attribute_owner(CUstream handle, CUstreamAttrID id, const void* value, Ref<Stream>* stream) {
    WEFT_ENTER(entry);
    WEFT_TRY(resolve_stream(entry, handle, stream));
    const bool known = id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
                       id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
                       id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    return known && value != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

WEFT_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return write_value(stream, address, value, flags, true);
}
WEFT_API CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, false);
}
WEFT_API CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
    return wait_value(stream, address, value, flags, true);
}

WEFT_API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                        unsigned int flags) {
    WEFT_TRY(check_ready());
    if (flags != 0 || count > 256 || (count != 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i)
        if (!is_aligned(operations[i])) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) WEFT_TRY(run_one(stream, operations[i]));
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* value) {
    Ref<Stream> stream;
    WEFT_TRY(find_attribute_owner(handle, id, value, &stream));
    std::memset(value, 0, sizeof *value);
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        value->priority = stream->priority();
        return CUDA_SUCCESS;
    }
    if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value->syncPolicy = CU_SYNC_POLICY_AUTO;
    std::lock_guard lock(stream->attributes_mutex);
    if (const auto found = stream->attributes.find(id); found != stream->attributes.end()) *value = found->second;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
    Ref<Stream> stream;
    WEFT_TRY(find_attribute_owner(handle, id, value, &stream));
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(stream->attributes_mutex);
    stream->attributes[id] = *value;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    WEFT_ENTER(entry);
    Ref<Stream> target, source;
    WEFT_TRY(resolve_stream(entry, to, &target));
    WEFT_TRY(resolve_stream(entry, from, &source));
    if (target == source) return CUDA_SUCCESS;
    if (&target->context() != &source->context()) return CUDA_ERROR_INVALID_VALUE;
    std::scoped_lock lock(target->attributes_mutex, source->attributes_mutex);
    target->attributes = source->attributes;
    return CUDA_SUCCESS;
}
