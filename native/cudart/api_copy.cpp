// Copies and fills of linear and pitched memory and of symbols. A copy without a stream uses the default stream;
// programs built for per-thread default streams hand that one in.
#include <cstring>

#include "cudart/copy.h"
#include "cudart/entry.h"
#include "cudart/registry.h"

namespace weft::cudart {

cudaError_t check_kind(cudaMemcpyKind kind) {
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

cudaError_t copy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream stream) {
    WEFT_TRY(check_kind(kind));
    if (count == 0) return cudaSuccess;
    if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
    const bool mine = stream != nullptr;  // the thread's own default stream
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return to_error(
                (mine ? driver().cuMemcpyHtoD_v2_ptds : driver().cuMemcpyHtoD_v2)(device_address(to), from, count));
        case cudaMemcpyDeviceToHost:
            return to_error(
                (mine ? driver().cuMemcpyDtoH_v2_ptds : driver().cuMemcpyDtoH_v2)(to, device_address(from), count));
        case cudaMemcpyDeviceToDevice:
            return to_error((mine ? driver().cuMemcpyDtoD_v2_ptds : driver().cuMemcpyDtoD_v2)(
                device_address(to), device_address(from), count));
        default:
            return to_error(
                (mine ? driver().cuMemcpy_ptds : driver().cuMemcpy)(device_address(to), device_address(from), count));
    }
}

cudaError_t copy_async(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream stream) {
    WEFT_TRY(check_kind(kind));
    if (count == 0) return cudaSuccess;
    if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return to_error(driver().cuMemcpyHtoDAsync_v2(device_address(to), from, count, stream));
        case cudaMemcpyDeviceToHost:
            return to_error(driver().cuMemcpyDtoHAsync_v2(to, device_address(from), count, stream));
        case cudaMemcpyDeviceToDevice:
            return to_error(driver().cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), count, stream));
        default: return to_error(driver().cuMemcpyAsync(device_address(to), device_address(from), count, stream));
    }
}

cudaError_t symbol_range(const void* symbol, std::size_t offset, std::size_t count, CUdeviceptr* address) {
    WEFT_TRY(enter());
    const Variable* variable = find_variable(symbol);
    if (variable == nullptr) return cudaErrorInvalidSymbol;
    std::size_t size_bytes = 0;
    WEFT_TRY(variable_address(*variable, address, &size_bytes));
    if (offset > size_bytes || count > size_bytes - offset) return cudaErrorInvalidValue;
    *address += offset;
    return cudaSuccess;
}

cudaError_t check_symbol_kind(cudaMemcpyKind kind, cudaMemcpyKind natural) {
    const bool fits = kind == natural || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    return fits ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

namespace api {
namespace {

struct Rows {
    std::size_t target_pitch, source_pitch, width, height;
};

cudaError_t describe(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind, CUDA_MEMCPY2D* copy) {
    WEFT_TRY(check_kind(kind));
    if (rows.height > 1 && (rows.width > rows.target_pitch || rows.width > rows.source_pitch))
        return cudaErrorInvalidPitchValue;
    *copy = {};
    copy->srcMemoryType = source_type(kind);
    copy->srcHost = from;
    copy->srcDevice = device_address(from);
    copy->srcPitch = rows.source_pitch;
    copy->dstMemoryType = target_type(kind);
    copy->dstHost = to;
    copy->dstDevice = device_address(to);
    copy->dstPitch = rows.target_pitch;
    copy->WidthInBytes = rows.width;
    copy->Height = rows.height;
    return cudaSuccess;
}

bool is_empty(std::size_t width, std::size_t height) { return width == 0 || height == 0; }

// The slices lie ysize rows apart.
cudaError_t fill_slices(const cudaPitchedPtr& memory, int value, const cudaExtent& extent, CUstream stream) {
    if (is_empty(extent.width, extent.height) || extent.depth == 0) return cudaSuccess;
    if (extent.height > memory.ysize && extent.depth > 1) return cudaErrorInvalidValue;
    const std::size_t slice = memory.pitch * memory.ysize;
    for (std::size_t z = 0; z < extent.depth; ++z)
        WEFT_TRY(driver().cuMemsetD2D8Async(device_address(memory.ptr) + z * slice, memory.pitch,
                                            static_cast<unsigned char>(value), extent.width, extent.height, stream));
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream default_stream) {
    WEFT_TRY(enter());
    return copy(to, from, count, kind, default_stream);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
    WEFT_TRY(enter());
    return copy_async(to, from, count, kind, stream);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t count, std::size_t offset,
                               cudaMemcpyKind kind, CUstream default_stream) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyHostToDevice));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(symbol, offset, count, &address));
    return copy(to_pointer(address), from, count, kind, default_stream);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t count, std::size_t offset,
                                 cudaMemcpyKind kind, CUstream default_stream) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyDeviceToHost));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(symbol, offset, count, &address));
    return copy(to, to_pointer(address), count, kind, default_stream);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t count, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyHostToDevice));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(symbol, offset, count, &address));
    return copy_async(to_pointer(address), from, count, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t count, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyDeviceToHost));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(symbol, offset, count, &address));
    return copy_async(to, to_pointer(address), count, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t count,
                                cudaStream_t stream) {
    WEFT_TRY(enter());
    if (to_device < 0 || to_device >= device_count() || from_device < 0 || from_device >= device_count())
        return cudaErrorInvalidDevice;
    if (count == 0) return cudaSuccess;
    CUcontext target;
    CUcontext source;
    WEFT_TRY(primary_context(to_device, &target));
    WEFT_TRY(primary_context(from_device, &source));
    return to_error(
        driver().cuMemcpyPeerAsync(device_address(to), target, device_address(from), source, count, stream));
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t count) {
    WEFT_TRY(enter());
    if (to_device < 0 || to_device >= device_count() || from_device < 0 || from_device >= device_count())
        return cudaErrorInvalidDevice;
    if (count == 0) return cudaSuccess;
    CUcontext target;
    CUcontext source;
    WEFT_TRY(primary_context(to_device, &target));
    WEFT_TRY(primary_context(from_device, &source));
    return to_error(driver().cuMemcpyPeer(device_address(to), target, device_address(from), source, count));
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind, CUstream default_stream) {
    WEFT_TRY(enter());
    CUDA_MEMCPY2D copy;
    WEFT_TRY(describe(to, from, {to_pitch, from_pitch, width, height}, kind, &copy));
    if (is_empty(width, height)) return cudaSuccess;
    return to_error(
        (default_stream != nullptr ? driver().cuMemcpy2DUnaligned_v2_ptds : driver().cuMemcpy2DUnaligned_v2)(&copy));
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    WEFT_TRY(enter());
    CUDA_MEMCPY2D copy;
    WEFT_TRY(describe(to, from, {to_pitch, from_pitch, width, height}, kind, &copy));
    return is_empty(width, height) ? cudaSuccess : to_error(driver().cuMemcpy2DAsync_v2(&copy, stream));
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t count, CUstream default_stream) {
    WEFT_TRY(enter());
    if (count == 0) return cudaSuccess;
    const auto byte = static_cast<unsigned char>(value);
    return to_error((default_stream != nullptr ? driver().cuMemsetD8_v2_ptds : driver().cuMemsetD8_v2)(
        device_address(pointer), byte, count));
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t count, cudaStream_t stream) {
    WEFT_TRY(enter());
    if (count == 0) return cudaSuccess;
    return to_error(
        driver().cuMemsetD8Async(device_address(pointer), static_cast<unsigned char>(value), count, stream));
}

cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width, std::size_t height,
                         CUstream default_stream) {
    WEFT_TRY(enter());
    if (is_empty(width, height)) return cudaSuccess;
    return to_error((default_stream != nullptr ? driver().cuMemsetD2D8_v2_ptds : driver().cuMemsetD2D8_v2)(
        device_address(pointer), pitch, static_cast<unsigned char>(value), width, height));
}

cudaError_t cudaMemset2DAsync(void* pointer, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
    WEFT_TRY(enter());
    if (is_empty(width, height)) return cudaSuccess;
    return to_error(driver().cuMemsetD2D8Async(device_address(pointer), pitch, static_cast<unsigned char>(value), width,
                                               height, stream));
}

// Fills of device memory need not wait for their end, as the manual of cudaMemset says.
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent, CUstream default_stream) {
    WEFT_TRY(enter());
    return fill_slices(memory, value, extent, default_stream);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
    WEFT_TRY(enter());
    return fill_slices(memory, value, extent, stream);
}

}  // namespace api
}  // namespace weft::cudart
