// The device sides are checked again when the stream gets there, since memory may have been freed meanwhile.
#include "swgpu/driver/copy.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"

namespace weft::swdriver {
namespace {

void fill_row(std::uint64_t address, std::uint64_t bytes, std::uint32_t pattern, std::uint32_t unit) {
    auto* row = reinterpret_cast<unsigned char*>(address);
    const bool uniform =
        unit == 1 || (pattern & 0xff) * (unit == 2 ? 0x0101u : 0x01010101u) == (unit == 2 ? pattern & 0xffff : pattern);
    if (uniform) {
        std::memset(row, static_cast<int>(pattern & 0xff), bytes);
    } else if (unit == 2) {
        std::fill_n(reinterpret_cast<std::uint16_t*>(row), bytes / 2, static_cast<std::uint16_t>(pattern));
    } else {
        std::fill_n(reinterpret_cast<std::uint32_t*>(row), bytes / 4, pattern);
    }
}

}  // namespace

bool covers(const Side& side, const Box& box, bool write) {
    if (!side.device || box.empty()) return true;
    const std::uint64_t last = side.row(box.height - 1, box.depth - 1);
    if (last < side.address) return false;
    return driver().space.accessible(side.address, last + box.width - side.address, write);
}

CUresult CopyOperation::run() {
    if (!covers(to, box, true) || !covers(from, box, false)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (std::uint64_t z = 0; z < box.depth; ++z) {
        for (std::uint64_t y = 0; y < box.height; ++y) {
            void* target = reinterpret_cast<void*>(to.row(y, z));
            const void* source = reinterpret_cast<const void*>(from.row(y, z));
            const std::uint64_t distance =
                to.row(y, z) > from.row(y, z) ? to.row(y, z) - from.row(y, z) : from.row(y, z) - to.row(y, z);
            if (distance < box.width) {
                std::memmove(target, source, box.width);
            } else {
                copy_streaming(target, source, box.width);
            }
        }
    }
    return CUDA_SUCCESS;
}

CUresult FillOperation::run() {
    if (!covers(to, box, true)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (std::uint64_t y = 0; y < box.height; ++y) fill_row(to.row(y, 0), box.width, pattern, unit);
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver
