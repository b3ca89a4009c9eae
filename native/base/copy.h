// Copies large blocks past the caches. For data that nobody reads again soon: bulk transfers.
#pragma once

#include <cstddef>

namespace weft {

inline constexpr std::size_t kStreamingBytes = 256 * 1024;

// memcpy; from kStreamingBytes on with non-temporal stores where the processor has them.
void copy_streaming(void* destination, const void* source, std::size_t size);

}  // namespace weft
