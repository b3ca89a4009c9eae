// Ordered maps under a reader-writer lock: the engine asks about once per kernel, worker and allocation, and caches the
// answer.
#include "swgpu/driver/address_space.h"

#include <algorithm>
#include <mutex>

namespace weft::swdriver {

AddressSpace::Map::const_iterator AddressSpace::at(std::uint64_t address) const {
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return allocations_.end();
    --next;
    return address < next->second.end() ? next : allocations_.end();
}

bool AddressSpace::insert(Allocation allocation) {
    std::unique_lock lock(mutex_);
    if (allocation.size == 0 || allocation.end() < allocation.start) return false;
    auto next = allocations_.lower_bound(allocation.start);
    if (next != allocations_.end() && next->first < allocation.end()) return false;
    if (next != allocations_.begin() && std::prev(next)->second.end() > allocation.start) return false;
    allocation.id = next_id_++;
    allocations_.emplace_hint(next, allocation.start, allocation);
    return true;
}

std::optional<Allocation> AddressSpace::erase(Map::iterator entry) {
    Allocation allocation = entry->second;
    allocations_.erase(entry);
    if (allocation.noted) notes_.erase(notes_.lower_bound(allocation.start), notes_.lower_bound(allocation.end()));
    epoch_.fetch_add(1, std::memory_order_acq_rel);
    return allocation;
}

std::optional<Allocation> AddressSpace::remove(std::uint64_t start) {
    std::unique_lock lock(mutex_);
    auto entry = allocations_.find(start);
    if (entry == allocations_.end()) return std::nullopt;
    return erase(entry);
}

std::optional<Allocation> AddressSpace::remove(std::uint64_t start, MemoryKind kind) {
    std::unique_lock lock(mutex_);
    auto entry = allocations_.find(start);
    if (entry == allocations_.end() || entry->second.kind != kind) return std::nullopt;
    return erase(entry);
}

std::optional<Allocation> AddressSpace::find(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    auto entry = at(address);
    return entry != allocations_.end() ? std::optional(entry->second) : std::nullopt;
}

std::vector<Allocation> AddressSpace::of_context(std::uint64_t context) const {
    std::shared_lock lock(mutex_);
    std::vector<Allocation> found;
    for (const auto& [start, allocation] : allocations_) {
        if (allocation.context == context) found.push_back(allocation);
    }
    return found;
}

bool AddressSpace::set_access(std::uint64_t start, std::uint64_t size, bool readable, bool writable) {
    std::unique_lock lock(mutex_);
    std::uint64_t position = start;
    while (position < start + size) {
        auto entry = allocations_.find(position);
        if (entry == allocations_.end() || entry->second.kind != MemoryKind::mapping) return false;
        position = entry->second.end();
    }
    if (position != start + size) return false;
    for (auto entry = allocations_.find(start); entry != allocations_.end() && entry->first < start + size; ++entry) {
        entry->second.readable = readable;
        entry->second.writable = writable;
    }
    epoch_.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

bool AddressSpace::note(std::uint64_t address, std::uint64_t size) {
    std::unique_lock lock(mutex_);
    const std::uint64_t end = address + size;
    if (size == 0 || end < address) return false;
    auto next = notes_.lower_bound(address);
    if (next != notes_.end() && next->first < end) return false;
    if (next != notes_.begin() && std::prev(next)->second > address) return false;
    std::uint64_t position = address;
    while (position < end) {
        auto entry = at(position);
        if (entry == allocations_.end() || entry->second.kind != MemoryKind::mapping) return false;
        position = entry->second.end();
    }
    bool narrowed = false;
    for (position = address; position < end;) {
        Allocation& mapping = allocations_.find(at(position)->first)->second;
        narrowed = narrowed || !mapping.noted;
        mapping.noted = true;
        position = mapping.end();
    }
    notes_.emplace(address, end);
    if (narrowed) epoch_.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

bool AddressSpace::unnote(std::uint64_t address) {
    std::unique_lock lock(mutex_);
    if (notes_.erase(address) == 0) return false;
    epoch_.fetch_add(1, std::memory_order_acq_rel);
    return true;
}

engine::MemoryRange AddressSpace::lookup_locked(std::uint64_t address) const {
    auto entry = at(address);
    if (entry == allocations_.end() || !entry->second.readable) return {};
    const Allocation& allocation = entry->second;
    if (!allocation.noted) return {allocation.start, allocation.end(), allocation.writable};
    auto note = notes_.upper_bound(address);
    if (note == notes_.begin() || (--note)->second <= address) return {};
    // A noted range may span mappings; the answer stays inside this one, the next question finds the next.
    return {std::max(note->first, allocation.start), std::min(note->second, allocation.end()), allocation.writable};
}

engine::MemoryRange AddressSpace::lookup(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    return lookup_locked(address);
}

bool AddressSpace::accessible(std::uint64_t address, std::uint64_t size, bool write) const {
    const std::uint64_t end = address + size;
    if (end < address) return false;
    std::shared_lock lock(mutex_);
    while (address < end) {
        const engine::MemoryRange range = lookup_locked(address);
        if (range.begin == range.end || (write && !range.writable)) return false;
        // Neighbouring mappings form one space; neighbouring allocations do not.
        if (range.end < end && at(address)->second.kind != MemoryKind::mapping) return false;
        address = range.end;
    }
    return true;
}

std::optional<engine::MemoryRange> AddressSpace::extent(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    auto entry = at(address);
    if (entry == allocations_.end()) return std::nullopt;
    if (entry->second.noted) {
        auto note = notes_.upper_bound(address);
        if (note != notes_.begin() && (--note)->second > address)
            return engine::MemoryRange{note->first, note->second, true};
    }
    return engine::MemoryRange{entry->second.start, entry->second.end(), entry->second.writable};
}

}  // namespace weft::swdriver
