#include "shim/read_ahead.h"

#include <cstring>
#include <utility>

namespace weft::shim {

ReadAhead::Range ReadAhead::wanted() {
    std::lock_guard lock(mutex_);
    if (!std::exchange(used_, true)) wanted_ = {};
    return wanted_;
}

void ReadAhead::synchronised(std::uint64_t work, Range range, std::span<const std::byte> bytes) {
    std::lock_guard lock(mutex_);
    work_ = work;
    held_ = range;
    bytes_.assign(bytes.begin(), bytes.end());
    used_ = bytes.empty();
}

bool ReadAhead::take(std::uint64_t work, Range range, void* destination) {
    std::lock_guard lock(mutex_);
    if (work != work_) return false;
    if (bytes_.size() == range.size_bytes && held_ == range) {
        std::memcpy(destination, bytes_.data(), bytes_.size());
        used_ = true;
        return true;
    }
    wanted_ = range;
    return false;
}

}  // namespace weft::shim
