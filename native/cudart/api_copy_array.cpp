// Copies with an array on a side, of boxes, and between devices in three dimensions. Offsets into arrays are in bytes
// in the calls of one and two dimensions and in elements in cudaMemcpy3D, as the manual has it.
#include <algorithm>

#include "cudart/copy.h"
#include "cudart/entry.h"
#include "cudart/state.h"

namespace weft::cudart::api {
namespace {

bool is_empty(const cudaExtent& extent) { return extent.width == 0 || extent.height == 0 || extent.depth == 0; }

// stream: the one to use, or with `wait` null or the thread's default stream.
cudaError_t run(const CUDA_MEMCPY2D& copy, CUstream stream, bool wait) {
    if (copy.WidthInBytes == 0 || copy.Height == 0) return cudaSuccess;
    if (!wait) return to_error(driver().cuMemcpy2DAsync_v2(&copy, stream));
    return to_error(
        (stream != nullptr ? driver().cuMemcpy2DUnaligned_v2_ptds : driver().cuMemcpy2DUnaligned_v2)(&copy));
}

struct ArrayEnd {
    cudaArray_const_t array;
    std::size_t x_bytes, y;
};

struct PitchedEnd {
    const void* pointer;
    std::size_t pitch;
};

struct Size {
    std::size_t width, height;
};

cudaError_t to_array(const ArrayEnd& to, const PitchedEnd& from, const Size& size, cudaMemcpyKind kind,
                     CUDA_MEMCPY2D* copy) {
    WEFT_TRY(enter());
    WEFT_TRY(check_kind(kind));
    *copy = {};
    copy->srcMemoryType = source_type(kind);
    copy->srcHost = from.pointer;
    copy->srcDevice = device_address(from.pointer);
    copy->srcPitch = from.pitch;
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = driver_array(to.array);
    copy->dstXInBytes = to.x_bytes;
    copy->dstY = to.y;
    copy->WidthInBytes = size.width;
    copy->Height = size.height;
    return size.height > 1 && size.width > from.pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
}

cudaError_t from_array(const PitchedEnd& to, const ArrayEnd& from, const Size& size, cudaMemcpyKind kind,
                       CUDA_MEMCPY2D* copy) {
    WEFT_TRY(enter());
    WEFT_TRY(check_kind(kind));
    *copy = {};
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = driver_array(from.array);
    copy->srcXInBytes = from.x_bytes;
    copy->srcY = from.y;
    copy->dstMemoryType = target_type(kind);
    copy->dstHost = const_cast<void*>(to.pointer);
    copy->dstDevice = device_address(to.pointer);
    copy->dstPitch = to.pitch;
    copy->WidthInBytes = size.width;
    copy->Height = size.height;
    return size.height > 1 && size.width > to.pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
}

cudaError_t row_bytes(cudaArray_const_t array, std::size_t* bytes) {
    CUDA_ARRAY3D_DESCRIPTOR about;
    WEFT_TRY(driver().cuArray3DGetDescriptor_v2(&about, driver_array(array)));
    WEFT_TRY(element_bytes(driver_array(array), bytes));
    *bytes *= about.Width;
    return cudaSuccess;
}

// A run of bytes goes through the rows of an array: the rest of the first row, whole rows, the beginning of the last.
template <typename Piece>
cudaError_t for_each_piece(const ArrayEnd& start, std::size_t count, Piece piece) {
    WEFT_TRY(enter());
    std::size_t row;
    WEFT_TRY(row_bytes(start.array, &row));
    ArrayEnd at = start;
    for (std::size_t done = 0; done < count;) {
        if (at.x_bytes >= row) return cudaErrorInvalidValue;
        const std::size_t left = count - done;
        const bool whole = at.x_bytes == 0 && left >= row;
        const Size size = whole ? Size{row, left / row} : Size{std::min(row - at.x_bytes, left), 1};
        WEFT_TRY(piece(at, done, size));
        done += size.width * size.height;
        at = {start.array, 0, at.y + size.height};
    }
    return cudaSuccess;
}

cudaError_t run_to_array(const ArrayEnd& to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream stream,
                         bool wait) {
    return for_each_piece(to, count, [&](const ArrayEnd& at, std::size_t done, const Size& size) {
        CUDA_MEMCPY2D copy;
        WEFT_TRY(to_array(at, {static_cast<const char*>(from) + done, size.width}, size, kind, &copy));
        return run(copy, stream, wait);
    });
}

cudaError_t run_from_array(void* to, const ArrayEnd& from, std::size_t count, cudaMemcpyKind kind, CUstream stream,
                           bool wait) {
    return for_each_piece(from, count, [&](const ArrayEnd& at, std::size_t done, const Size& size) {
        CUDA_MEMCPY2D copy;
        WEFT_TRY(from_array({static_cast<char*>(to) + done, size.width}, at, size, kind, &copy));
        return run(copy, stream, wait);
    });
}

cudaError_t between_arrays(const ArrayEnd& to, const ArrayEnd& from, const Size& size, CUstream stream) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = driver_array(from.array);
    copy.srcXInBytes = from.x_bytes;
    copy.srcY = from.y;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = driver_array(to.array);
    copy.dstXInBytes = to.x_bytes;
    copy.dstY = to.y;
    copy.WidthInBytes = size.width;
    copy.Height = size.height;
    return run(copy, stream, true);
}

cudaError_t to_driver_peer_copy(const cudaMemcpy3DPeerParms& copy, CUDA_MEMCPY3D_PEER* out) {
    if (copy.srcDevice < 0 || copy.srcDevice >= device_count() || copy.dstDevice < 0 ||
        copy.dstDevice >= device_count())
        return cudaErrorInvalidDevice;
    const cudaMemcpy3DParms plain = {copy.srcArray, copy.srcPos, copy.srcPtr, copy.dstArray,
                                     copy.dstPos,   copy.dstPtr, copy.extent, cudaMemcpyDeviceToDevice};
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver_copy(plain, &mine));
    static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER), "they differ in what is reserved or a context");
    *out = std::bit_cast<CUDA_MEMCPY3D_PEER>(mine);
    WEFT_TRY(primary_context(copy.srcDevice, &out->srcContext));
    return primary_context(copy.dstDevice, &out->dstContext);
}

}  // namespace

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from, std::size_t pitch,
                                std::size_t width, std::size_t height, cudaMemcpyKind kind, CUstream default_stream) {
    CUDA_MEMCPY2D copy;
    WEFT_TRY(to_array({to, x, y}, {from, pitch}, {width, height}, kind, &copy));
    return run(copy, default_stream, true);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from, std::size_t pitch,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    CUDA_MEMCPY2D copy;
    WEFT_TRY(to_array({to, x, y}, {from, pitch}, {width, height}, kind, &copy));
    return run(copy, stream, false);
}

cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t from, std::size_t x, std::size_t y,
                                  std::size_t width, std::size_t height, cudaMemcpyKind kind, CUstream default_stream) {
    CUDA_MEMCPY2D copy;
    WEFT_TRY(from_array({to, pitch}, {from, x, y}, {width, height}, kind, &copy));
    return run(copy, default_stream, true);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, cudaArray_const_t from, std::size_t x,
                                       std::size_t y, std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
    CUDA_MEMCPY2D copy;
    WEFT_TRY(from_array({to, pitch}, {from, x, y}, {width, height}, kind, &copy));
    return run(copy, stream, false);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y, cudaArray_const_t from,
                                     std::size_t from_x, std::size_t from_y, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, CUstream default_stream) {
    WEFT_TRY(enter());
    WEFT_TRY(check_kind(kind));
    return between_arrays({to, to_x, to_y}, {from, from_x, from_y}, {width, height}, default_stream);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y, cudaArray_const_t from,
                                   std::size_t from_x, std::size_t from_y, std::size_t count, cudaMemcpyKind kind,
                                   CUstream default_stream) {
    WEFT_TRY(check_kind(kind));
    std::size_t row;
    WEFT_TRY(enter());
    WEFT_TRY(row_bytes(to, &row));
    return for_each_piece({from, from_x, from_y}, count, [&](const ArrayEnd& at, std::size_t done, const Size& size) {
        // The rows of both ends break at the same bytes only if they are equally long and begin alike.
        const std::size_t position = to_y * row + to_x + done;
        const ArrayEnd target = {to, position % row, position / row};
        if (target.x_bytes + size.width > row) return cudaErrorInvalidValue;
        return between_arrays(target, at, size, default_stream);
    });
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from, std::size_t count,
                              cudaMemcpyKind kind, CUstream default_stream) {
    return run_to_array({to, x, y}, from, count, kind, default_stream, true);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from, std::size_t count,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    return run_to_array({to, x, y}, from, count, kind, stream, false);
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y, std::size_t count,
                                cudaMemcpyKind kind, CUstream default_stream) {
    return run_from_array(to, {from, x, y}, count, kind, default_stream, true);
}

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, std::size_t x, std::size_t y, std::size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return run_from_array(to, {from, x, y}, count, kind, stream, false);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, CUstream default_stream) {
    if (copy == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver_copy(*copy, &mine));
    if (is_empty(copy->extent)) return cudaSuccess;
    return to_error((default_stream != nullptr ? driver().cuMemcpy3D_v2_ptds : driver().cuMemcpy3D_v2)(&mine));
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
    if (copy == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver_copy(*copy, &mine));
    return is_empty(copy->extent) ? cudaSuccess : to_error(driver().cuMemcpy3DAsync_v2(&mine, stream));
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy, CUstream default_stream) {
    if (copy == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMCPY3D_PEER mine;
    WEFT_TRY(to_driver_peer_copy(*copy, &mine));
    if (is_empty(copy->extent)) return cudaSuccess;
    return to_error((default_stream != nullptr ? driver().cuMemcpy3DPeer_ptds : driver().cuMemcpy3DPeer)(&mine));
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
    if (copy == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMCPY3D_PEER mine;
    WEFT_TRY(to_driver_peer_copy(*copy, &mine));
    return is_empty(copy->extent) ? cudaSuccess : to_error(driver().cuMemcpy3DPeerAsync(&mine, stream));
}

}  // namespace weft::cudart::api
