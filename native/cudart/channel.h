// Formats of array elements: the runtime counts bits per channel, the driver names a format and a number of channels.
#pragma once

#include <cstddef>

#include "cudart/abi.h"

namespace weft::cudart {

cudaError_t to_driver_format(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels);
cudaError_t to_channel_desc(CUarray_format format, unsigned channels, cudaChannelFormatDesc* desc);
// Of one element; 0 for formats that are not made of equal channels.
std::size_t format_bytes(CUarray_format format, unsigned channels);

}  // namespace weft::cudart
