// Work of capturing streams: what calls of the driver API become in a graph. Looked at only while something is
// captured. Design note: docs/design/graphs.md, "Capture".
#pragma once

#include "shim/objects.h"

namespace weft::shim {

// While something is captured: whether the stream does so itself.
inline bool is_capturing(const Stream& stream) {
    return graph::is_any_capturing() && stream.capturing.capture != nullptr;
}
// True if the call ends here with *result: it cannot be captured, or it would disturb a capture.
bool is_refused(Stream& stream, CUresult* result);

CUresult capture_copy(Stream& stream, CUmemorytype to_type, const void* to, CUmemorytype from_type, const void* from,
                      std::size_t size_bytes);
CUresult capture_fill(Stream& stream, CUdeviceptr to, std::size_t pitch, unsigned value, unsigned unit,
                      std::size_t width, std::size_t height);
// An executable launched in a capturing stream becomes a child of the graph, as it is now.
CUresult capture_launch(Stream& stream, const graph::Plan& plan);

// The frames that fills and copies within the device make.
template <typename Frame>
CUresult capture_frame(Stream& stream, const Frame& frame) {
    if constexpr (requires { frame.ByteCount; }) {
        return capture_copy(stream, CU_MEMORYTYPE_DEVICE, reinterpret_cast<const void*>(frame.dstDevice),
                            CU_MEMORYTYPE_DEVICE, reinterpret_cast<const void*>(frame.srcDevice), frame.ByteCount);
    } else if constexpr (requires { frame.dstPitch; }) {
        if constexpr (requires { frame.uc; }) {
            return capture_fill(stream, frame.dstDevice, frame.dstPitch, frame.uc, 1, frame.Width, frame.Height);
        } else if constexpr (requires { frame.us; }) {
            return capture_fill(stream, frame.dstDevice, frame.dstPitch, frame.us, 2, frame.Width, frame.Height);
        } else {
            return capture_fill(stream, frame.dstDevice, frame.dstPitch, frame.ui, 4, frame.Width, frame.Height);
        }
    } else if constexpr (requires { frame.N; }) {
        if constexpr (requires { frame.uc; }) {
            return capture_fill(stream, frame.dstDevice, 0, frame.uc, 1, frame.N, 1);
        } else if constexpr (requires { frame.us; }) {
            return capture_fill(stream, frame.dstDevice, 0, frame.us, 2, frame.N, 1);
        } else {
            return capture_fill(stream, frame.dstDevice, 0, frame.ui, 4, frame.N, 1);
        }
    } else {
        return graph::refuse_capture(stream.capturing);
    }
}

}  // namespace weft::shim
