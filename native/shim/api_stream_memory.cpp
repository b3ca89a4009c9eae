// Memory operations of streams in batches, and stream attributes.
#include <algorithm>
#include <cstring>

#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

constexpr unsigned kMaxBatch = 256;  // as the manual says

CUresult find(CUstream handle, Stream** stream) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    return find_stream(*context, handle, stream);
}

template <typename Frame, typename Operation>
CUresult submit_value(Stream& stream, const Operation& operation, std::uint64_t value) {
    return submit<Frame>(stream, 0, [&](auto& frame, std::byte*) {
        frame.addr = operation.address;
        frame.value = static_cast<decltype(frame.value)>(value);
        frame.flags = operation.flags;
    });
}

bool is_good(CUdeviceptr address, std::uint64_t bytes, unsigned flags, unsigned known) {
    return address % bytes == 0 && (flags & ~known) == 0 && is_device_range(address, bytes);
}

CUresult check(const CUstreamBatchMemOpParams& operation) {
    const auto& wait = operation.waitValue;
    const auto& write = operation.writeValue;
    bool good = true;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32: good = is_good(wait.address, 4, wait.flags, 3); break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64: good = is_good(wait.address, 8, wait.flags, 3); break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32: good = is_good(write.address, 4, write.flags, 1); break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64: good = is_good(write.address, 8, write.flags, 1); break;
        case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult submit_one(Stream& stream, const CUstreamBatchMemOpParams& operation) {
    const auto& wait = operation.waitValue;
    const auto& write = operation.writeValue;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32: return submit_value<wire::StreamWaitValue32>(stream, wait, wait.value);
        case CU_STREAM_MEM_OP_WAIT_VALUE_64: return submit_value<wire::StreamWaitValue64>(stream, wait, wait.value64);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32: return submit_value<wire::StreamWriteValue32>(stream, write, write.value);
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return submit_value<wire::StreamWriteValue64>(stream, write, write.value64);
        default: return CUDA_SUCCESS;  // a barrier: the operations of a stream are done in order anyway
    }
}

// A stream's attributes that can be set: each with its place in the stream.
bool is_settable(CUstreamAttrID id) {
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

}  // namespace

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned int count, CUstreamBatchMemOpParams* operations,
                               unsigned int flags) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    if (flags != 0 || count > kMaxBatch) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i)
        if (const CUresult checked = check(operations[i]); checked != CUDA_SUCCESS) return checked;
    for (unsigned i = 0; i < count; ++i)
        if (const CUresult sent = submit_one(*stream, operations[i]); sent != CUDA_SUCCESS) return sent;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* value) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    if (id != CU_LAUNCH_ATTRIBUTE_PRIORITY && !is_settable(id)) return CUDA_ERROR_INVALID_VALUE;
    std::memset(value, 0, sizeof *value);
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        value->priority = stream->priority;
        return CUDA_SUCCESS;
    }
    if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value->syncPolicy = CU_SYNC_POLICY_AUTO;
    std::lock_guard lock(stream->context->mutex);
    if (const auto found = stream->attributes.find(id); found != stream->attributes.end()) *value = found->second;
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
    Stream* stream;
    if (const CUresult result = find(handle, &stream); result != CUDA_SUCCESS) return result;
    if (!is_settable(id)) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(stream->context->mutex);
    stream->attributes[id] = *value;
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream destination, CUstream source) {
    Stream *to, *from;
    if (const CUresult result = find(destination, &to); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find(source, &from); result != CUDA_SUCCESS) return result;
    if (to->context != from->context) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(to->context->mutex);
    if (to != from) to->attributes = from->attributes;
    return CUDA_SUCCESS;
}

}  // namespace weft::shim::api
