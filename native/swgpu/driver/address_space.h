// Which addresses are memory that the driver knows: device allocations, mapped extents, module globals, page-locked
// host memory. One for all devices, since addressing is unified. Pure bookkeeping with its own lock; it maps and frees
// nothing itself. Bounds are exact to the byte. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "swgpu/engine/engine.h"
#include "swgpu/engine/texture.h"

namespace weft::swdriver {

enum class MemoryKind : std::uint8_t { device, mapping, global, host, registered };

struct Allocation {
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    MemoryKind kind = MemoryKind::device;
    bool readable = true;  // a mapping is neither until cuMemSetAccess
    bool writable = true;
    bool noted = false;  // mapping: only noted ranges inside are accessible
    int device = 0;
    unsigned flags = 0;         // host memory: the flags of its call
    bool managed = false;       // device memory by cuMemAllocManaged
    std::uint64_t context = 0;  // handle of the context it was made in; 0: none
    std::uint64_t backing = 0;  // handle of a mapping's memory, or of an allocation's pool; 0: none
    std::uint64_t id = 0;       // CU_POINTER_ATTRIBUTE_BUFFER_ID

    std::uint64_t end() const { return start + size; }
    bool is_host() const { return kind == MemoryKind::host || kind == MemoryKind::registered; }
};

class AddressSpace final : public engine::TextureMap {
  public:
    // Numbers the allocation. False (nothing changed) if it overlaps another one.
    bool insert(Allocation allocation);
    // Removes the allocation that starts at this address, with the notes inside it.
    std::optional<Allocation> remove(std::uint64_t start);
    // Removes only if the kind matches too.
    std::optional<Allocation> remove(std::uint64_t start, MemoryKind kind);
    std::optional<Allocation> find(std::uint64_t address) const;
    std::vector<Allocation> of_context(std::uint64_t context) const;
    // Sets access of the mappings that fill [start, start+size) exactly; false if they do not.
    bool set_access(std::uint64_t start, std::uint64_t size, bool readable, bool writable);

    // The part of the mapping(s) at address that is carved out as an allocation of its own begins or ends.
    bool note(std::uint64_t address, std::uint64_t size);
    bool unnote(std::uint64_t address);

    // True if every byte of the range may be accessed.
    bool accessible(std::uint64_t address, std::uint64_t size, bool write) const;
    // The exact range around an address as a program sees it: allocation, or noted range.
    std::optional<engine::MemoryRange> extent(std::uint64_t address) const;

    engine::MemoryRange lookup(std::uint64_t address) const override;
    const engine::Texture* texture(std::uint64_t handle) const override;  // in api_texture.cpp
    std::uint64_t epoch() const override { return epoch_.load(std::memory_order_acquire); }

  private:
    using Map = std::map<std::uint64_t, Allocation>;
    Map::const_iterator at(std::uint64_t address) const;
    engine::MemoryRange lookup_locked(std::uint64_t address) const;
    std::optional<Allocation> erase(Map::iterator entry);

    mutable std::shared_mutex mutex_;
    Map allocations_;
    std::map<std::uint64_t, std::uint64_t> notes_;  // start -> end
    std::uint64_t next_id_ = 1;
    std::atomic<std::uint64_t> epoch_{1};
};

}  // namespace weft::swdriver
