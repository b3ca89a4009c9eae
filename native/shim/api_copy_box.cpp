// Copies of two and three dimensions. The descriptors become two sides and a box here, which copy_box.h moves.
#include <algorithm>
#include <cstring>

#include "gen/shim_api.h"
#include "shim/copy_box.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

// One side of a descriptor, as far as the memory type tells it.
struct Described {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    CUarray array;
    std::uint64_t x, y, z;
    std::uint64_t pitch, height;
};

struct Side {
    bool on_device = false;
    bool is_unified = false;  // on the device, and to be seen by the program when the call is over
    DeviceSide device;
    HostSide host;
};

// Where the rows lie. A pitch or height of 0 means: as small as can be.
CUresult lay_out(const Described& described, const Box& box, Pitches* pitches, std::uint64_t* first) {
    std::uint64_t row = 0, rows = 0;
    if (__builtin_add_overflow(described.x, box.width, &row) || __builtin_add_overflow(described.y, box.height, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t pitch = described.pitch != 0 ? described.pitch : row;
    const std::uint64_t height = described.height != 0 ? described.height : rows;
    if (pitch < row || (box.depth > 1 && height < rows)) return CUDA_ERROR_INVALID_VALUE;
    pitches->row = pitch;
    std::uint64_t planes = 0, lines = 0;
    if (__builtin_mul_overflow(pitch, height, &pitches->plane) ||
        __builtin_mul_overflow(pitches->plane, described.z, &planes) ||
        __builtin_mul_overflow(pitch, described.y, &lines) || __builtin_add_overflow(planes, lines, first) ||
        __builtin_add_overflow(*first, described.x, first))
        return CUDA_ERROR_INVALID_VALUE;
    return pitches->span(box) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult memory_side(const Described& described, const Box& box, std::uint64_t base, bool on_device, Side* side) {
    Pitches pitches;
    std::uint64_t first = 0;
    if (base == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult laid = lay_out(described, box, &pitches, &first); laid != CUDA_SUCCESS) return laid;
    std::uint64_t address = 0;
    if (__builtin_add_overflow(base, first, &address)) return CUDA_ERROR_INVALID_VALUE;
    side->is_unified = Runtime::get()->unified().find(address).has_value();
    side->on_device = on_device || side->is_unified;
    if (!side->on_device) {
        side->host = {reinterpret_cast<std::byte*>(address), pitches};
        return CUDA_SUCCESS;
    }
    if (!is_device_range(address, *pitches.span(box))) return CUDA_ERROR_INVALID_VALUE;
    side->device.place = address;
    side->device.pitches = pitches;
    return CUDA_SUCCESS;
}

std::uint64_t channel_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8: return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF: return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT: return 4;
        default: return 0;  // laid out in a way that only the driver knows: it checks
    }
}

bool fits(std::uint64_t first, std::uint64_t count, std::uint64_t all) { return first <= all && count <= all - first; }

CUresult array_side(const Described& described, const Box& box, Side* side) {
    const Array* array = Runtime::get()->arrays.find(described.array);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const CUDA_ARRAY3D_DESCRIPTOR& shape = array->descriptor;
    const std::uint64_t row = shape.Width * shape.NumChannels * channel_bytes(shape.Format);
    if ((row != 0 && !fits(described.x, box.width, row)) ||
        !fits(described.y, box.height, std::max<std::uint64_t>(shape.Height, 1)) ||
        !fits(described.z, box.depth, std::max<std::uint64_t>(shape.Depth, 1)) || described.x > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    side->on_device = true;
    side->device.place = array->number;
    side->device.is_array = true;
    side->device.x = static_cast<std::uint32_t>(described.x);
    side->device.y = static_cast<std::uint32_t>(described.y);
    side->device.z = static_cast<std::uint32_t>(described.z);
    return CUDA_SUCCESS;
}

CUresult find_side(const Described& described, const Box& box, Side* side) {
    switch (described.type) {
        case CU_MEMORYTYPE_HOST:
            return memory_side(described, box, reinterpret_cast<std::uint64_t>(described.host), false, side);
        case CU_MEMORYTYPE_DEVICE: return memory_side(described, box, described.device, true, side);
        case CU_MEMORYTYPE_UNIFIED:
            return memory_side(described, box, described.device, find_device_range(described.device).has_value(), side);
        case CU_MEMORYTYPE_ARRAY: return array_side(described, box, side);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult move(Stream& stream, const Side& to, const Side& from, const Box& box, CopyMode mode) {
    if (to.on_device && from.on_device) return copy_box_within_device(stream, to.device, from.device, box);
    if (to.on_device) return copy_box_to_device(stream, to.device, from.host, box, mode);
    if (from.on_device) return copy_box_from_device(stream, to.host, from.device, box, mode);
    return copy_box_on_host(stream, to.host, from.host, box);
}

// As a node of the graph that the stream captures.
CUresult capture_box(Stream& stream, const Described& to, const Described& from, const Box& box) {
    graph::CopyWork work;
    work.copy = {from.x,
                 from.y,
                 from.z,
                 0,
                 from.type,
                 from.host,
                 from.device,
                 from.array,
                 nullptr,
                 from.pitch,
                 from.height,
                 to.x,
                 to.y,
                 to.z,
                 0,
                 to.type,
                 const_cast<void*>(to.host),
                 to.device,
                 to.array,
                 nullptr,
                 to.pitch,
                 to.height,
                 box.width,
                 box.height,
                 box.depth};
    return graph::capture_work(stream.capturing, work);
}

CUresult copy(const Described& described_to, const Described& described_from, const Box& box, CUstream handle,
              CopyMode mode) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Stream* stream;
    if (const CUresult result = find_stream(*context, handle, &stream); result != CUDA_SUCCESS) return result;
    if (box.is_empty()) return CUDA_SUCCESS;
    if (!box.bytes()) return CUDA_ERROR_INVALID_VALUE;
    Side to, from;
    if (const CUresult result = find_side(described_to, box, &to); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_side(described_from, box, &from); result != CUDA_SUCCESS) return result;
    if (is_capturing(*stream) && mode == CopyMode::asynchronous) [[unlikely]]
        return capture_box(*stream, described_to, described_from, box);
    const bool is_unified = to.is_unified || from.is_unified;
    if (is_unified) {
        if (const CUresult ready = Runtime::get()->unified().before_work(*stream); ready != CUDA_SUCCESS) return ready;
    }
    const CUresult sent = move(*stream, to, from, box, mode);
    return sent == CUDA_SUCCESS && is_unified && mode == CopyMode::blocking ? synchronize(*stream) : sent;
}

CUresult copy_2d(const CUDA_MEMCPY2D& c, CUstream stream, CopyMode mode) {
    return copy({c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY, 0, c.dstPitch, 0},
                {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY, 0, c.srcPitch, 0},
                {c.WidthInBytes, c.Height, 1}, stream, mode);
}

// CUDA_MEMCPY3D, or CUDA_MEMCPY3D_PEER, whose contexts say nothing that the addresses do not.
template <typename Descriptor>
CUresult copy_3d(const Descriptor& c, CUstream stream, CopyMode mode) {
    if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    return copy(
        {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight},
        {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight},
        {c.WidthInBytes, c.Height, c.Depth}, stream, mode);
}

}  // namespace

CUresult read_sides(const CUDA_MEMCPY3D& c, CopySides* sides) {
    if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    sides->box = {c.WidthInBytes, c.Height, c.Depth};
    if (sides->box.is_empty() || !sides->box.bytes()) return CUDA_ERROR_INVALID_VALUE;
    Side to, from;
    if (const CUresult result = find_side({c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY,
                                           c.dstZ, c.dstPitch, c.dstHeight},
                                          sides->box, &to);
        result != CUDA_SUCCESS)
        return result;
    if (const CUresult result = find_side({c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY,
                                           c.srcZ, c.srcPitch, c.srcHeight},
                                          sides->box, &from);
        result != CUDA_SUCCESS)
        return result;
    *sides = {sides->box, to.on_device, from.on_device, to.device, from.device, to.host, from.host};
    return CUDA_SUCCESS;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* descriptor, CUstream default_stream) {
    return copy_2d(*descriptor, default_stream, CopyMode::blocking);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* descriptor, CUstream default_stream) {
    return copy_2d(*descriptor, default_stream, CopyMode::blocking);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* descriptor, CUstream stream) {
    return copy_2d(*descriptor, stream, CopyMode::asynchronous);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* descriptor, CUstream default_stream) {
    return copy_3d(*descriptor, default_stream, CopyMode::blocking);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* descriptor, CUstream stream) {
    return copy_3d(*descriptor, stream, CopyMode::asynchronous);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* descriptor, CUstream default_stream) {
    return copy_3d(*descriptor, default_stream, CopyMode::blocking);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* descriptor, CUstream stream) {
    return copy_3d(*descriptor, stream, CopyMode::asynchronous);
}

}  // namespace weft::shim::api
