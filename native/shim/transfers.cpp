#include "shim/transfers.h"

#include <iterator>
#include <utility>

namespace weft::shim {

std::uint32_t Transfers::open(std::span<std::byte> destination, bool in_background) {
    std::lock_guard lock(mutex_);
    const std::uint32_t number = ++next_;
    open_.emplace(number, Transfer{destination, destination.size(), in_background, UINT64_MAX, {}});
    return number;
}

std::uint32_t Transfers::open_box(std::byte* base, const Pitches& pitches, const Box& box, bool in_background) {
    std::lock_guard lock(mutex_);
    const std::uint32_t number = ++next_;
    open_.emplace(number,
                  Transfer{{base, *pitches.span(box)}, *box.bytes(), in_background, UINT64_MAX, Rows{pitches, box}});
    return number;
}

std::uint32_t Transfers::open_repeated(std::span<std::byte> destination) { return repeat(open(destination, true)); }

std::uint32_t Transfers::open_repeated(std::byte* base, const Pitches& pitches, const Box& box) {
    return repeat(open_box(base, pitches, box, true));
}

std::uint32_t Transfers::repeat(std::uint32_t number) {
    std::lock_guard lock(mutex_);
    Transfer& transfer = open_.find(number)->second;
    transfer.is_repeated = true;
    transfer.size_bytes = transfer.remaining;
    transfer.expected = 0;
    return number;
}

void Transfers::expect(std::uint32_t transfer) {
    std::lock_guard lock(mutex_);
    if (const auto found = open_.find(transfer); found != open_.end()) {
        ++found->second.expected;
        found->second.work = UINT64_MAX;  // until it is told
    }
}

void Transfers::belongs_to(std::uint32_t transfer, std::uint64_t work) {
    std::lock_guard lock(mutex_);
    if (const auto found = open_.find(transfer); found != open_.end()) found->second.work = work;
}

std::span<std::byte> Transfers::place(std::uint32_t transfer, std::uint64_t offset, std::uint64_t size) {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(transfer);
    if (found == open_.end() || found->second.rows) return {};
    const auto destination = found->second.destination;
    if (offset > destination.size() || size > destination.size() - offset) return {};
    return destination.subspan(offset, size);
}

bool Transfers::spread(std::uint32_t transfer, std::uint64_t offset, std::span<const std::byte> bytes) {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(transfer);
    if (found == open_.end() || !found->second.rows) return false;
    const Rows& rows = *found->second.rows;
    const std::uint64_t size = *rows.box.bytes();
    if (offset > size || bytes.size() > size - offset) return false;
    unpack(found->second.destination.data(), rows.pitches, rows.box, offset, bytes.data(), bytes.size());
    return true;
}

bool Transfers::landed(std::uint32_t transfer, std::uint64_t size) {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(transfer);
    if (found == open_.end()) return false;
    found->second.remaining -= size < found->second.remaining ? size : found->second.remaining;
    if (found->second.remaining != 0) return false;
    const bool in_background = found->second.in_background;
    if (found->second.is_repeated) {
        Transfer& transfer = found->second;
        transfer.remaining = transfer.size_bytes;
        if (transfer.expected == 0) return false;
        --transfer.expected;
        return true;
    }
    open_.erase(found);
    return in_background;
}

std::uint64_t Transfers::size_bytes(std::uint32_t transfer) const {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(transfer);
    return found != open_.end() ? found->second.destination.size() : 0;
}

std::uint64_t Transfers::landed_bytes(std::uint32_t transfer) const {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(transfer);
    return found != open_.end() ? found->second.destination.size() - found->second.remaining : 0;
}

void Transfers::close(std::uint32_t transfer) {
    std::lock_guard lock(mutex_);
    open_.erase(transfer);
}

std::size_t Transfers::close_up_to(std::uint64_t work) {
    std::lock_guard lock(mutex_);
    std::size_t closed = 0;
    for (auto at = open_.begin(); at != open_.end();) {
        Transfer& transfer = at->second;
        const bool is_over = transfer.in_background && transfer.work <= work;
        if (is_over) {
            closed += std::exchange(transfer.expected, 0);
            transfer.remaining = transfer.size_bytes;
        }
        at = is_over && !transfer.is_repeated ? open_.erase(at) : std::next(at);
    }
    return closed;
}

bool Transfers::overlaps(const void* address, std::uint64_t size) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    std::lock_guard lock(mutex_);
    for (const auto& [number, transfer] : open_) {
        const auto start = reinterpret_cast<std::uintptr_t>(transfer.destination.data());
        if (transfer.expected != 0 && begin < start + transfer.destination.size() && start < begin + size) return true;
    }
    return false;
}

bool Transfers::empty() const {
    std::lock_guard lock(mutex_);
    return open_.empty();
}

}  // namespace weft::shim
