#include "shim/virtual_memory.h"

#include <algorithm>

#include "shim/device_memory.h"
#include "shim/objects.h"

namespace weft::shim {
namespace {

// The memory counts for cuMemGetInfo until handles and mappings are gone.
bool count_out_if_gone(const PhysicalMemory& memory) {
    if (memory.handles != 0 || memory.mappings != 0) return false;
    memory.device->memory->add_module_bytes(-static_cast<std::int64_t>(memory.size_bytes));
    return true;
}

}  // namespace

void VirtualMemory::add_reservation(std::uint64_t address, std::uint64_t size_bytes) {
    std::lock_guard lock(mutex_);
    reservations_[address] = size_bytes;
    is_used_.store(true);
}

bool VirtualMemory::remove_reservation(std::uint64_t address, std::uint64_t size_bytes) {
    std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != size_bytes) return false;
    const auto mapping = mappings_.lower_bound(address);
    if (mapping != mappings_.end() && mapping->first < address + size_bytes) return false;
    reservations_.erase(found);
    return true;
}

bool VirtualMemory::is_free(std::uint64_t address, std::uint64_t size_bytes) const {
    std::lock_guard lock(mutex_);
    auto reservation = reservations_.upper_bound(address);
    if (reservation == reservations_.begin()) return false;
    --reservation;
    const std::uint64_t offset = address - reservation->first;
    if (offset >= reservation->second || size_bytes > reservation->second - offset) return false;
    const auto next = mappings_.lower_bound(address);
    return at(address) == mappings_.end() && (next == mappings_.end() || next->first >= address + size_bytes);
}

void VirtualMemory::add_mapping(std::uint64_t address, const std::shared_ptr<PhysicalMemory>& memory) {
    std::lock_guard lock(mutex_);
    ++memory->mappings;
    mappings_[address] = {address, memory, {}};
}

VirtualMemory::Mappings::const_iterator VirtualMemory::at(std::uint64_t address) const {
    auto mapping = mappings_.upper_bound(address);
    if (mapping == mappings_.begin()) return mappings_.end();
    --mapping;
    return address - mapping->first < mapping->second.memory->size_bytes ? mapping : mappings_.end();
}

std::optional<VirtualMapping> VirtualMemory::mapping_at(std::uint64_t address) const {
    std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    return found != mappings_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<VirtualMapping> VirtualMemory::find(std::uint64_t address) const {
    if (!is_used()) return std::nullopt;
    std::lock_guard lock(mutex_);
    const auto found = at(address);
    return found != mappings_.end() ? std::optional(found->second) : std::nullopt;
}

bool VirtualMemory::remove_mapping(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found == mappings_.end()) return false;
    --found->second.memory->mappings;
    const bool is_gone = count_out_if_gone(*found->second.memory);
    mappings_.erase(found);
    return is_gone;
}

void VirtualMemory::set_access(std::uint64_t address, int device, unsigned flags) {
    std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found != mappings_.end()) found->second.access[device] = flags;
}

bool VirtualMemory::covers(std::uint64_t address, std::uint64_t size_bytes) const {
    const std::uint64_t end = address + size_bytes;
    if (end < address) return false;
    std::lock_guard lock(mutex_);
    while (address < end) {
        const auto mapping = at(address);
        if (mapping == mappings_.end()) return false;
        const auto& access = mapping->second.access;
        if (std::none_of(access.begin(), access.end(), [](const auto& entry) { return entry.second != 0; }))
            return false;
        address = mapping->first + mapping->second.memory->size_bytes;
    }
    return true;
}

bool VirtualMemory::retain(PhysicalMemory& memory) {
    std::lock_guard lock(mutex_);
    return memory.handles++ == 0;
}

void VirtualMemory::release(PhysicalMemory& memory, bool* is_last, bool* is_gone) {
    std::lock_guard lock(mutex_);
    *is_last = --memory.handles == 0;
    *is_gone = count_out_if_gone(memory);
}

}  // namespace weft::shim
