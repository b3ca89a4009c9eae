#include "shim/captured.h"

#include "graph/graph.h"

namespace weft::shim {

bool is_refused(Stream& stream, CUresult* result) {
    *result = CUDA_SUCCESS;
    if (stream.capturing.capture != nullptr) {
        *result = graph::refuse_capture(stream.capturing);
    } else if (stream.number == 0) {
        *result = graph::check_legacy_use(stream.context);
    }
    return *result != CUDA_SUCCESS;
}

CUresult capture_copy(Stream& stream, CUmemorytype to_type, const void* to, CUmemorytype from_type, const void* from,
                      std::size_t size_bytes) {
    graph::CopyWork work;
    work.copy.dstMemoryType = to_type;
    work.copy.srcMemoryType = from_type;
    if (to_type == CU_MEMORYTYPE_HOST) {
        work.copy.dstHost = const_cast<void*>(to);
    } else {
        work.copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
    }
    if (from_type == CU_MEMORYTYPE_HOST) {
        work.copy.srcHost = from;
    } else {
        work.copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
    }
    work.copy.WidthInBytes = work.copy.srcPitch = work.copy.dstPitch = size_bytes;
    work.copy.Height = work.copy.Depth = work.copy.srcHeight = work.copy.dstHeight = 1;
    return graph::capture_work(stream.capturing, work);
}

CUresult capture_fill(Stream& stream, CUdeviceptr to, std::size_t pitch, unsigned value, unsigned unit,
                      std::size_t width, std::size_t height) {
    graph::FillWork work;
    work.fill = {to, pitch, value, unit, width, height};
    return graph::capture_work(stream.capturing, work);
}

CUresult capture_launch(Stream& stream, const graph::Plan& plan) {
    return graph::capture_child(stream.capturing, plan);
}

}  // namespace weft::shim
