// Slots lie in chunks that are never freed, so a look-up needs only the slot's own lock.
#include "swgpu/driver/object.h"

#include <array>
#include <mutex>
#include <vector>

namespace weft::swdriver {
namespace {

constexpr std::uint32_t kChunkSlots = 1024;
constexpr std::uint32_t kChunks = 16384;
constexpr std::uint64_t kTagBase =
    0x50;  // with the kind added: never the top byte of an address, and positive as a signed number

}  // namespace

struct HandleTable::Slot {
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    std::uint64_t handle = 0;  // 0: free
    std::uint32_t generation = 0;
    Object* object = nullptr;
};

struct HandleTable::State {
    std::mutex mutex;  // of the free list and of chunk creation
    std::array<std::atomic<Slot*>, kChunks> chunks{};
    std::vector<std::uint32_t> free;
    std::uint32_t next = 1;
};

namespace {

class SlotLock {
  public:
    explicit SlotLock(std::atomic_flag& flag) : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~SlotLock() { flag_.clear(std::memory_order_release); }

  private:
    std::atomic_flag& flag_;
};

}  // namespace

HandleTable& HandleTable::instance() {
    static HandleTable& table = *new HandleTable(new State);
    return table;
}

HandleTable::Slot* HandleTable::slot_of(std::uint64_t handle, Kind kind) {
    if (handle >> 56 != kTagBase + static_cast<std::uint64_t>(kind)) return nullptr;
    const std::uint32_t index = static_cast<std::uint32_t>(handle);
    if (index >= kChunkSlots * kChunks) return nullptr;
    Slot* chunk = state_->chunks[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk != nullptr ? &chunk[index % kChunkSlots] : nullptr;
}

std::uint64_t HandleTable::insert(Object* object) {
    std::uint32_t index = 0;
    {
        std::lock_guard lock(state_->mutex);
        if (!state_->free.empty()) {
            index = state_->free.back();
            state_->free.pop_back();
        } else {
            if (state_->next == kChunkSlots * kChunks) return 0;
            index = state_->next++;
        }
        auto& chunk = state_->chunks[index / kChunkSlots];
        if (chunk.load(std::memory_order_relaxed) == nullptr)
            chunk.store(new Slot[kChunkSlots], std::memory_order_release);
    }
    Slot& slot = state_->chunks[index / kChunkSlots].load(std::memory_order_acquire)[index % kChunkSlots];
    object->acquire();
    SlotLock lock(slot.lock);
    slot.generation = (slot.generation + 1) & 0xffffff;
    slot.handle =
        (kTagBase + static_cast<std::uint64_t>(object->kind())) << 56 | std::uint64_t{slot.generation} << 32 | index;
    slot.object = object;
    object->handle_.store(slot.handle, std::memory_order_relaxed);
    return slot.handle;
}

Ref<Object> HandleTable::find(std::uint64_t handle, Kind kind) {
    Slot* slot = slot_of(handle, kind);
    if (slot == nullptr) return {};
    SlotLock lock(slot->lock);
    return slot->handle == handle ? Ref<Object>(slot->object) : Ref<Object>();
}

Ref<Object> HandleTable::remove(std::uint64_t handle, Kind kind) {
    Slot* slot = slot_of(handle, kind);
    if (slot == nullptr) return {};
    Ref<Object> object;
    {
        SlotLock lock(slot->lock);
        if (slot->handle != handle) return {};
        slot->handle = 0;
        object = Ref<Object>::adopt(std::exchange(slot->object, nullptr));
    }
    object->handle_.store(0, std::memory_order_relaxed);
    std::lock_guard lock(state_->mutex);
    state_->free.push_back(static_cast<std::uint32_t>(handle));
    return object;
}

}  // namespace weft::swdriver
