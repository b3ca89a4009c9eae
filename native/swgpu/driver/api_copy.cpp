// Copies. A device side is checked at the call (CUDA_ERROR_INVALID_VALUE); which side is page-locked decides when the
// call returns.
#include "swgpu/driver/api.h"
#include "swgpu/driver/copy.h"

using namespace weft::swdriver;

namespace {

constexpr std::uint64_t kInlineBytes = 64 << 10;  // done by the caller if the stream is idle
constexpr std::uint64_t kStagedBytes = 1 << 20;   // pageable source of a busy stream, taken at the call
enum class Way { wait, async };

bool page_locked(std::uint64_t address, std::uint64_t size) {
    const auto allocation = driver().space.find(address);
    return allocation && (allocation->is_host() ? address + size <= allocation->end() : true);
}

Side device_side(CUdeviceptr address) { return {.address = address, .device = true}; }
Side host_side(const void* pointer) { return {.address = reinterpret_cast<std::uint64_t>(pointer)}; }
// With unified addressing the address tells which side it is.
Side unified_side(CUdeviceptr address) {
    const auto allocation = driver().space.find(address);
    return {.address = address, .device = allocation && !allocation->is_host()};
}

std::uint64_t span(const Side& side, const Box& box) {
    return side.row(box.height - 1, box.depth - 1) + box.width - side.address;
}

void stage(CopyOperation& copy) {
    copy.staged.resize(copy.box.bytes());
    Side staging{.address = reinterpret_cast<std::uint64_t>(copy.staged.data())};
    staging.row_pitch = copy.box.width;
    staging.plane_pitch = copy.box.width * copy.box.height;
    CopyOperation take;
    take.to = staging;
    take.from = copy.from;
    take.box = copy.box;
    take.run();
    copy.from = staging;
}

// As a node of the graph that the stream captures.
CUresult capture(Stream& stream, const Side& to, const Side& from, const Box& box) {
    if (to.array || from.array) return CUDA_ERROR_NOT_SUPPORTED;
    weft::graph::CopyWork work;
    work.copy.dstMemoryType = to.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    work.copy.srcMemoryType = from.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    work.copy.dstDevice = to.device ? to.address : 0;
    work.copy.srcDevice = from.device ? from.address : 0;
    work.copy.dstHost = to.device ? nullptr : reinterpret_cast<void*>(to.address);
    work.copy.srcHost = from.device ? nullptr : reinterpret_cast<const void*>(from.address);
    work.copy.dstPitch = to.row_pitch;
    work.copy.srcPitch = from.row_pitch;
    work.copy.dstHeight = to.row_pitch != 0 ? to.plane_pitch / to.row_pitch : 0;
    work.copy.srcHeight = from.row_pitch != 0 ? from.plane_pitch / from.row_pitch : 0;
    work.copy.WidthInBytes = box.width;
    work.copy.Height = box.height;
    work.copy.Depth = box.depth;
    return weft::graph::capture_work(stream.capturing, work);
}

CUresult submit(CUstream handle, Side to, Side from, Box box, Way way) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    if (box.empty()) return CUDA_SUCCESS;
    if (to.address == 0 || from.address == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!covers(to, box, true) || !covers(from, box, false)) return CUDA_ERROR_INVALID_VALUE;

    if (stream->is_capturing() && way == Way::async) return capture(*stream, to, from, box);
    WEFT_TRY(refuse_while_capturing(*stream));
    const bool pageable_source = !from.device && !from.array && !page_locked(from.address, span(from, box));
    const bool pageable_target = !to.device && !to.array && !page_locked(to.address, span(to, box));
    const bool between_devices = (to.device || to.array) && (from.device || from.array);
    bool wait = (way == Way::wait && !between_devices) || pageable_target;
    const bool run_inline = kImmediate || wait || pageable_source || box.bytes() <= kInlineBytes;
    auto copy = std::make_unique<CopyOperation>();
    copy->to = to;
    copy->from = from;
    copy->box = box;
    if (pageable_source && !wait && !driver().scheduler.may_start(*stream)) {
        // The data are taken at the call; where they are too many to keep, the call lasts until the stream has read
        // them.
        if (box.bytes() <= kStagedBytes) {
            stage(*copy);
        } else {
            wait = true;
        }
    } else if (pageable_source) {
        wait = true;  // inline most likely; if another thread gets in between, this call waits for its turn
    }
    Scheduler& scheduler = driver().scheduler;
    const std::uint64_t sequence = scheduler.enqueue(*stream, std::move(copy), run_inline);
    if (!wait) return CUDA_SUCCESS;
    scheduler.wait(*stream, sequence);
    stream->context().output.flush();
    return stream->context().status();
}

CUresult submit_1d(CUstream stream, Side to, Side from, size_t size, Way way) {
    return submit(stream, to, from, Box{.width = size}, way);
}

CUresult array_side(CUarray handle, Side* side) {
    const Ref<Array> array = find<Array>(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    side->address = array->address();
    side->array = array;
    return CUDA_SUCCESS;
}

// One side of a 2D or 3D descriptor.
CUresult described_side(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, Side* side) {
    switch (type) {
        case CU_MEMORYTYPE_HOST: *side = host_side(host); return CUDA_SUCCESS;
        case CU_MEMORYTYPE_DEVICE: *side = device_side(device); return CUDA_SUCCESS;
        case CU_MEMORYTYPE_UNIFIED: *side = unified_side(device); return CUDA_SUCCESS;
        case CU_MEMORYTYPE_ARRAY: return array_side(array, side);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

bool fits(std::uint64_t first, std::uint64_t count, std::uint64_t all) { return first <= all && count <= all - first; }

CUresult place(Side* side, size_t x, size_t y, size_t z, size_t pitch, size_t height, const Box& box) {
    if (side->array) {
        const Array& array = *side->array;
        if (!fits(x, box.width, array.row_bytes()) || !fits(y, box.height, array.rows()) ||
            !fits(z, box.depth, array.planes()))
            return CUDA_ERROR_INVALID_VALUE;
        pitch = array.row_bytes();
        height = array.rows();
    }
    if (pitch == 0) pitch = x + box.width;
    if (height == 0) height = y + box.height;
    if (pitch < x + box.width || (box.depth > 1 && height < y + box.height)) return CUDA_ERROR_INVALID_VALUE;
    side->row_pitch = pitch;
    side->plane_pitch = pitch * height;
    if (side->address != 0) side->address = side->row(y, z) + x;
    return CUDA_SUCCESS;
}

CUresult copy_2d(const CUDA_MEMCPY2D* copy, CUstream stream, Way way) {
    WEFT_TRY(check_ready());
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Box box{.width = copy->WidthInBytes, .height = copy->Height};
    Side to, from;
    WEFT_TRY(described_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, &to));
    WEFT_TRY(described_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, &from));
    WEFT_TRY(place(&to, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch, 0, box));
    WEFT_TRY(place(&from, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch, 0, box));
    return submit(stream, to, from, box, way);
}

CUresult copy_3d(const CUDA_MEMCPY3D* copy, CUstream stream, Way way) {
    WEFT_TRY(check_ready());
    if (copy == nullptr || copy->srcLOD != 0 || copy->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    const Box box{.width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth};
    Side to, from;
    WEFT_TRY(described_side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, &to));
    WEFT_TRY(described_side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, &from));
    WEFT_TRY(place(&to, copy->dstXInBytes, copy->dstY, copy->dstZ, copy->dstPitch, copy->dstHeight, box));
    WEFT_TRY(place(&from, copy->srcXInBytes, copy->srcY, copy->srcZ, copy->srcPitch, copy->srcHeight, box));
    return submit(stream, to, from, box, way);
}

}  // namespace

namespace weft::swdriver {

CUresult make_copy(const CUDA_MEMCPY3D& described, std::unique_ptr<CopyOperation>* copy) {
    if (described.srcLOD != 0 || described.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
    const Box box{.width = described.WidthInBytes, .height = described.Height, .depth = described.Depth};
    Side to, from;
    WEFT_TRY(described_side(described.dstMemoryType, described.dstHost, described.dstDevice, described.dstArray, &to));
    WEFT_TRY(
        described_side(described.srcMemoryType, described.srcHost, described.srcDevice, described.srcArray, &from));
    WEFT_TRY(place(&to, described.dstXInBytes, described.dstY, described.dstZ, described.dstPitch, described.dstHeight,
                   box));
    WEFT_TRY(place(&from, described.srcXInBytes, described.srcY, described.srcZ, described.srcPitch,
                   described.srcHeight, box));
    if (box.empty() || to.address == 0 || from.address == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!covers(to, box, true) || !covers(from, box, false)) return CUDA_ERROR_INVALID_VALUE;
    *copy = std::make_unique<CopyOperation>();
    (*copy)->to = to;
    (*copy)->from = from;
    (*copy)->box = box;
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver

WEFT_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    return submit_1d(nullptr, device_side(to), host_side(from), size, Way::wait);
}
WEFT_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return submit_1d(stream, device_side(to), host_side(from), size, Way::async);
}
WEFT_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    return submit_1d(nullptr, host_side(to), device_side(from), size, Way::wait);
}
WEFT_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return submit_1d(stream, host_side(to), device_side(from), size, Way::async);
}
WEFT_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return submit_1d(nullptr, device_side(to), device_side(from), size, Way::wait);
}
WEFT_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return submit_1d(stream, device_side(to), device_side(from), size, Way::async);
}
WEFT_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    WEFT_TRY(check_ready());
    return submit_1d(nullptr, unified_side(to), unified_side(from), size, Way::wait);
}
WEFT_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    WEFT_TRY(check_ready());
    return submit_1d(stream, unified_side(to), unified_side(from), size, Way::async);
}
WEFT_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                               size_t size) {
    WEFT_TRY(check_ready());
    if (!find<Context>(to_context) || !find<Context>(from_context)) return CUDA_ERROR_INVALID_CONTEXT;
    return submit_1d(nullptr, device_side(to), device_side(from), size, Way::wait);
}
WEFT_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                    size_t size, CUstream stream) {
    WEFT_TRY(check_ready());
    if (!find<Context>(to_context) || !find<Context>(from_context)) return CUDA_ERROR_INVALID_CONTEXT;
    return submit_1d(stream, device_side(to), device_side(from), size, Way::async);
}

WEFT_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return copy_2d(copy, nullptr, Way::wait); }
WEFT_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return copy_2d(copy, nullptr, Way::wait); }
WEFT_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_2d(copy, stream, Way::async);
}
WEFT_API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return copy_3d(copy, nullptr, Way::wait); }
WEFT_API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy_3d(copy, stream, Way::async);
}

// Fills.

namespace {

CUresult fill(CUstream handle, CUdeviceptr to, std::uint64_t pitch, std::uint32_t pattern, std::uint32_t unit,
              std::uint64_t count, std::uint64_t height) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    if (to % unit != 0 || pitch % unit != 0 || count > SIZE_MAX / unit) return CUDA_ERROR_INVALID_VALUE;
    auto operation = std::make_unique<FillOperation>();
    operation->to = {.address = to, .row_pitch = pitch, .device = true};
    operation->box = {.width = count * unit, .height = height};
    operation->pattern = pattern;
    operation->unit = unit;
    if (operation->box.empty()) return CUDA_SUCCESS;
    if (height > 1 && pitch < operation->box.width) return CUDA_ERROR_INVALID_VALUE;
    if (!covers(operation->to, operation->box, true)) return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_capturing()) {
        weft::graph::FillWork work;
        work.fill = {to, pitch, pattern, unit, count, height};
        return weft::graph::capture_work(stream->capturing, work);
    }
    WEFT_TRY(check_captures(*stream));
    const bool run_inline = kImmediate || operation->box.bytes() <= kInlineBytes;
    driver().scheduler.enqueue(*stream, std::move(operation), run_inline);
    return CUDA_SUCCESS;
}

}  // namespace

WEFT_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fill(nullptr, to, 0, value, 1, count, 1);
}
WEFT_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fill(nullptr, to, 0, value, 2, count, 1);
}
WEFT_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
    return fill(nullptr, to, 0, value, 4, count, 1);
}
WEFT_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill(stream, to, 0, value, 1, count, 1);
}
WEFT_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill(stream, to, 0, value, 2, count, 1);
}
WEFT_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    return fill(stream, to, 0, value, 4, count, 1);
}
WEFT_API CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
    return fill(nullptr, to, pitch, value, 1, width, height);
}
WEFT_API CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
    return fill(nullptr, to, pitch, value, 2, width, height);
}
WEFT_API CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
    return fill(nullptr, to, pitch, value, 4, width, height);
}
WEFT_API CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                    CUstream stream) {
    return fill(stream, to, pitch, value, 1, width, height);
}
WEFT_API CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                     CUstream stream) {
    return fill(stream, to, pitch, value, 2, width, height);
}
WEFT_API CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                     CUstream stream) {
    return fill(stream, to, pitch, value, 4, width, height);
}
