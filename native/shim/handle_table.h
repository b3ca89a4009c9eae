// Handles given to the program: tag(8) | generation(24) | index(32). Never a pointer, so a wrong handle is found, not
// followed. find is lock-free; insert and remove take a lock. The table lives as long as the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace weft::shim {

// Below 0x80: programs keep handles in signed integers, too, and some refuse negative ones.
enum class HandleTag : std::uint8_t {
    context = 0x41,
    module = 0x42,
    function = 0x43,
    library = 0x44,
    kernel = 0x45,
    stream = 0x46,
    event = 0x47,
    link = 0x48,
    pool = 0x50,
    array = 0x51,
    memory = 0x52,
};

template <typename T, HandleTag tag>
class HandleTable {
  public:
    static constexpr std::size_t kChunk = 1024;
    static constexpr std::size_t kChunks = 4096;

    // Takes the object over. 0 when kChunk * kChunks objects are alive.
    std::uint64_t insert(std::shared_ptr<T> object) {
        std::lock_guard lock(mutex_);
        std::uint32_t index;
        if (!free_.empty()) {
            index = free_.back();
            free_.pop_back();
        } else {
            if (next_ == kChunk * kChunks) return 0;
            index = next_++;
        }
        auto& chunk = chunks_[index / kChunk];
        if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Chunk{}, std::memory_order_release);
        Slot& slot = (*chunk.load(std::memory_order_relaxed))[index % kChunk];
        slot.generation = (slot.generation + 1) & 0xffffff;
        slot.owner = std::move(object);
        slot.object.store(slot.owner.get(), std::memory_order_relaxed);
        const std::uint64_t handle = make(slot.generation, index);
        slot.handle.store(handle, std::memory_order_release);
        return handle;
    }

    // nullptr for anything that is not a live handle of this kind. Valid until the program destroys the object.
    T* find(const void* handle) const { return find(reinterpret_cast<std::uintptr_t>(handle)); }
    T* find(std::uint64_t handle) const {
        const Slot* slot = slot_of(handle);
        return slot != nullptr ? slot->object.load(std::memory_order_relaxed) : nullptr;
    }
    std::shared_ptr<T> share(const void* handle) {
        std::lock_guard lock(mutex_);
        const Slot* slot = slot_of(reinterpret_cast<std::uintptr_t>(handle));
        return slot != nullptr ? slot->owner : nullptr;
    }

    // The object, if the handle was alive; it dies with the last reference.
    std::shared_ptr<T> remove(std::uint64_t handle) {
        std::lock_guard lock(mutex_);
        Slot* slot = const_cast<Slot*>(slot_of(handle));
        if (slot == nullptr) return nullptr;
        slot->handle.store(0, std::memory_order_release);
        free_.push_back(static_cast<std::uint32_t>(handle));
        return std::move(slot->owner);
    }
    std::shared_ptr<T> remove(const void* handle) { return remove(reinterpret_cast<std::uintptr_t>(handle)); }

  private:
    struct Slot {
        std::atomic<std::uint64_t> handle{0};  // 0: not alive
        std::atomic<T*> object{nullptr};
        std::uint32_t generation = 0;
        std::shared_ptr<T> owner;
    };
    using Chunk = std::array<Slot, kChunk>;

    static std::uint64_t make(std::uint32_t generation, std::uint32_t index) {
        return static_cast<std::uint64_t>(tag) << 56 | static_cast<std::uint64_t>(generation) << 32 | index;
    }
    const Slot* slot_of(std::uint64_t handle) const {
        if (handle >> 56 != static_cast<std::uint64_t>(tag)) return nullptr;
        const std::uint32_t index = static_cast<std::uint32_t>(handle);
        if (index >= kChunk * kChunks) return nullptr;
        const Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
        if (chunk == nullptr) return nullptr;
        const Slot& slot = (*chunk)[index % kChunk];
        return slot.handle.load(std::memory_order_acquire) == handle ? &slot : nullptr;
    }

    std::mutex mutex_;
    std::array<std::atomic<Chunk*>, kChunks> chunks_{};
    std::vector<std::uint32_t> free_;
    std::uint32_t next_ = 0;
};

}  // namespace weft::shim
