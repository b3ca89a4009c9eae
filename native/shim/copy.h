// How bytes travel between this process and device memory; which way is taken depends on the path and on whether the
// host memory is page-locked (docs/design/call-path.md, "Copies"). Device ranges have been checked by the caller.
#pragma once

#include "shim/objects.h"

namespace weft::shim {

enum class CopyMode {
    blocking,      // when the call returns, the source may be changed and the destination is complete
    asynchronous,  // page-locked memory is read and written when the stream gets there
};

CUresult copy_to_device(Stream& stream, CUdeviceptr destination, const void* source, std::uint64_t size_bytes,
                        CopyMode mode);
CUresult copy_from_device(Stream& stream, void* destination, CUdeviceptr source, std::uint64_t size_bytes,
                          CopyMode mode);

}  // namespace weft::shim
