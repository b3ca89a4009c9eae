// Free space is kept twice, by address (to join neighbours) and by size (for best fit).
#include "base/range_heap.h"

namespace weft {

void RangeHeap::erase_free(std::map<std::uint64_t, std::uint64_t>::iterator piece) {
    free_by_size_.erase({piece->second, piece->first});
    free_bytes_ -= piece->second;
    free_.erase(piece);
}

void RangeHeap::insert_free(std::uint64_t address, std::uint64_t size) {
    if (size == 0) return;
    auto next = free_.lower_bound(address);
    if (next != free_.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == address) {
            address = previous->first;
            size += previous->second;
            erase_free(previous);
        }
    }
    if (next != free_.end() && address + size == next->first) {
        size += next->second;
        erase_free(next);
    }
    free_.emplace(address, size);
    free_by_size_.emplace(size, address);
    free_bytes_ += size;
}

void RangeHeap::add(std::uint64_t address, std::uint64_t size) { insert_free(address, size); }

bool RangeHeap::is_free(std::uint64_t address, std::uint64_t size) const {
    auto piece = free_.upper_bound(address);
    if (piece == free_.begin()) return false;
    --piece;
    return address + size <= piece->first + piece->second;
}

bool RangeHeap::remove(std::uint64_t address, std::uint64_t size) {
    if (!is_free(address, size)) return false;
    auto piece = std::prev(free_.upper_bound(address));
    const auto [start, length] = *piece;
    erase_free(piece);
    insert_free(start, address - start);
    insert_free(address + size, start + length - address - size);
    return true;
}

std::optional<std::uint64_t> RangeHeap::allocate(std::uint64_t size) {
    const std::uint64_t rounded = round(size);
    if (rounded < size) return std::nullopt;  // overflow
    auto best = free_by_size_.lower_bound({rounded, 0});
    if (best == free_by_size_.end()) return std::nullopt;
    return take(best->second, 0, size);
}

std::optional<std::uint64_t> RangeHeap::allocate(std::uint64_t size, std::uint64_t alignment) {
    const std::uint64_t rounded = round(size);
    if (rounded < size) return std::nullopt;  // overflow
    for (auto piece = free_by_size_.lower_bound({rounded, 0}); piece != free_by_size_.end(); ++piece) {
        const auto [length, address] = *piece;
        const std::uint64_t skipped = (alignment - address % alignment) % alignment;
        if (skipped <= length - rounded) return take(address, skipped, size);
    }
    return std::nullopt;
}

// Takes a range out of the free piece at address, `skipped` bytes behind its start.
std::uint64_t RangeHeap::take(std::uint64_t address, std::uint64_t skipped, std::uint64_t size) {
    const std::uint64_t rounded = round(size);
    const auto piece = free_.find(address);
    const std::uint64_t length = piece->second, start = address + skipped;
    erase_free(piece);
    insert_free(address, skipped);
    insert_free(start + rounded, length - skipped - rounded);
    used_.emplace(start, std::pair{size, rounded});
    used_bytes_ += rounded;
    return start;
}

std::optional<std::uint64_t> RangeHeap::detach(std::uint64_t address) {
    auto range = used_.find(address);
    if (range == used_.end()) return std::nullopt;
    const std::uint64_t rounded = range->second.second;
    used_bytes_ -= rounded;
    used_.erase(range);
    return rounded;
}

void RangeHeap::attach(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t rounded = round(size);
    used_.emplace(address, std::pair{size, rounded});
    used_bytes_ += rounded;
}

std::optional<RangeHeap::Range> RangeHeap::find(std::uint64_t address) const {
    auto range = used_.upper_bound(address);
    if (range == used_.begin()) return std::nullopt;
    --range;
    if (address >= range->first + range->second.first) return std::nullopt;
    return Range{range->first, range->second.first, range->second.second};
}

std::uint64_t RangeHeap::free_tail(std::uint64_t end) const {
    auto piece = free_.lower_bound(end);
    if (piece == free_.begin()) return 0;
    --piece;
    return piece->first + piece->second == end ? piece->second : 0;
}

bool RangeHeap::check_invariants() const {
    std::uint64_t sum = 0;
    std::uint64_t previous_end = 0;
    for (const auto& [address, size] : free_) {
        if (size == 0 || address % alignment_ != 0) return false;
        if (previous_end != 0 && address <= previous_end) return false;  // overlapping or not joined
        if (!free_by_size_.contains({size, address})) return false;
        previous_end = address + size;
        sum += size;
    }
    return sum == free_bytes_ && free_by_size_.size() == free_.size();
}

}  // namespace weft
