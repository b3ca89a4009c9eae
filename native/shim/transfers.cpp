#include "shim/transfers.h"

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
    return std::erase_if(open_,
                         [work](const auto& entry) { return entry.second.in_background && entry.second.work <= work; });
}

bool Transfers::overlaps(const void* address, std::uint64_t size) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    std::lock_guard lock(mutex_);
    for (const auto& [number, transfer] : open_) {
        const auto start = reinterpret_cast<std::uintptr_t>(transfer.destination.data());
        if (begin < start + transfer.destination.size() && start < begin + size) return true;
    }
    return false;
}

bool Transfers::empty() const {
    std::lock_guard lock(mutex_);
    return open_.empty();
}

}  // namespace weft::shim
