// Copies of one dimension between host and device memory. Ranges are checked here; copy.h decides how host bytes
// travel.
#include <cstring>

#include "gen/shim_api.h"
#include "shim/copy.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

struct Target {
    Context* context = nullptr;
    Stream* stream = nullptr;
};

// The current context and the stream of the handle in it; an error that is due comes first.
CUresult find_target(CUstream handle, Target* target) {
    if (const CUresult result = usable_context(&target->context); result != CUDA_SUCCESS) return result;
    return find_stream(*target->context, handle, &target->stream);
}

// Unified memory is the device's: its shadow here is out of reach of whatever is in flight.
bool is_unified(const void* address) {
    return Runtime::get()->unified().find(reinterpret_cast<CUdeviceptr>(address)).has_value();
}
// A copy that touches unified memory on the device's side; returns CUDA_SUCCESS for all others.
CUresult prepare(Stream& stream, CUdeviceptr address) {
    UnifiedMemory& unified = Runtime::get()->unified();
    return unified.is_used() && unified.find(address) ? unified.before_work(stream) : CUDA_SUCCESS;
}

CUresult within_device(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle, CopyMode mode);

CUresult to_device(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream handle, CopyMode mode) {
    if (is_unified(source))
        return within_device(destination, reinterpret_cast<CUdeviceptr>(source), bytes, handle, mode);
    Target target;
    if (const CUresult result = find_target(handle, &target); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    if (source == nullptr || !is_device_range(destination, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = prepare(*target.stream, destination); result != CUDA_SUCCESS) return result;
    const CUresult sent = copy_to_device(*target.stream, destination, source, bytes, mode);
    // The program may look at the copy as soon as the call is over.
    if (sent != CUDA_SUCCESS || mode == CopyMode::asynchronous || !Runtime::get()->unified().find(destination))
        return sent;
    return synchronize(*target.stream);
}

CUresult from_device(void* destination, CUdeviceptr source, std::size_t bytes, CUstream handle, CopyMode mode) {
    if (is_unified(destination))
        return within_device(reinterpret_cast<CUdeviceptr>(destination), source, bytes, handle, mode);
    Target target;
    if (const CUresult result = find_target(handle, &target); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    if (destination == nullptr || !is_device_range(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = prepare(*target.stream, source); result != CUDA_SUCCESS) return result;
    return copy_from_device(*target.stream, destination, source, bytes, mode);
}

CUresult within_device(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle, CopyMode mode) {
    Target target;
    if (const CUresult result = find_target(handle, &target); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    // Between devices, too: addresses are unified, so the driver on the other side sees which ones they are.
    if (!is_device_range(destination, bytes) || !is_device_range(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult sent = submit<wire::MemcpyDtoDAsync>(*target.stream, 0, [&](auto& frame, std::byte*) {
        frame.dstDevice = destination;
        frame.srcDevice = source;
        frame.ByteCount = bytes;
    });
    const UnifiedMemory& unified = Runtime::get()->unified();
    const bool waits =
        mode == CopyMode::blocking && unified.is_used() && (unified.find(destination) || unified.find(source));
    return sent == CUDA_SUCCESS && waits ? synchronize(*target.stream) : sent;
}

// cuMemcpy and friends: unified addressing tells the direction.
CUresult anywhere(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle, CopyMode mode) {
    const bool to = find_device_range(destination).has_value(), from = find_device_range(source).has_value();
    if (to && from) return within_device(destination, source, bytes, handle, mode);
    if (to) return to_device(destination, reinterpret_cast<const void*>(source), bytes, handle, mode);
    if (from) return from_device(reinterpret_cast<void*>(destination), source, bytes, handle, mode);
    Target target;
    if (const CUresult result = find_target(handle, &target); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    Runtime& runtime = *Runtime::get();
    if (destination == 0 || source == 0 || runtime.device_of(destination) != nullptr ||
        runtime.device_of(source) != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    // Host to host, in stream order: after the work before it.
    const Reply reply = submit_and_wait<wire::StreamSync>(*target.stream, 0, [](auto&, std::byte*) {});
    if (reply.status != CUDA_SUCCESS) return settle(*target.context, reply.status);
    std::memmove(reinterpret_cast<void*>(destination), reinterpret_cast<const void*>(source), bytes);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream default_stream) {
    return to_device(destination, source, bytes, default_stream, CopyMode::blocking);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream) {
    return to_device(destination, source, bytes, stream, CopyMode::asynchronous);
}
CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, std::size_t bytes, CUstream default_stream) {
    return from_device(destination, source, bytes, default_stream, CopyMode::blocking);
}
CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    return from_device(destination, source, bytes, stream, CopyMode::asynchronous);
}
CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream default_stream) {
    return anywhere(destination, source, bytes, default_stream, CopyMode::blocking);
}
CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    return anywhere(destination, source, bytes, stream, CopyMode::asynchronous);
}
CUresult cuMemcpyPeer(CUdeviceptr destination, CUcontext, CUdeviceptr source, CUcontext, std::size_t bytes,
                      CUstream default_stream) {
    return within_device(destination, source, bytes, default_stream, CopyMode::blocking);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr destination, CUcontext, CUdeviceptr source, CUcontext, std::size_t bytes,
                           CUstream stream) {
    return within_device(destination, source, bytes, stream, CopyMode::asynchronous);
}

}  // namespace weft::shim::api
