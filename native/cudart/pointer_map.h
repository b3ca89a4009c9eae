// A hash table from addresses to objects. Lookups take no lock and may run beside one writer; writers are serialised by
// the owner.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::cudart {

template <typename T>
class PointerMap {
  public:
    T* find(const void* key) const {
        const Table* table = table_.load(std::memory_order_acquire);
        if (table == nullptr || key == nullptr) return nullptr;
        for (std::size_t i = hash(key) & table->mask;; i = (i + 1) & table->mask) {
            const void* seen = table->slots[i].key.load(std::memory_order_acquire);
            if (seen == key) return table->slots[i].value.load(std::memory_order_acquire);
            if (seen == nullptr) return nullptr;
        }
    }
    void insert(const void* key, T* value) {
        Table* table = table_.load(std::memory_order_relaxed);
        if (table == nullptr || used_ * 2 > table->mask) table = grow(table);
        place(*table, key, value);
    }
    // The key stays as a mark without a value, so that chains hold; growing drops it.
    void remove(const void* key) {
        Table* table = table_.load(std::memory_order_relaxed);
        if (table == nullptr) return;
        for (std::size_t i = hash(key) & table->mask;; i = (i + 1) & table->mask) {
            const void* seen = table->slots[i].key.load(std::memory_order_relaxed);
            if (seen == key) return table->slots[i].value.store(nullptr, std::memory_order_release);
            if (seen == nullptr) return;
        }
    }

  private:
    struct Slot {
        std::atomic<const void*> key{nullptr};
        std::atomic<T*> value{nullptr};
    };
    struct Table {
        std::size_t mask;
        Slot* slots;
    };

    static std::size_t hash(const void* key) {
        return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(key) * 0x9e3779b97f4a7c15ull) >> 20);
    }
    void place(Table& table, const void* key, T* value) {
        for (std::size_t i = hash(key) & table.mask;; i = (i + 1) & table.mask) {
            const void* seen = table.slots[i].key.load(std::memory_order_relaxed);
            if (seen != nullptr && seen != key) continue;
            if (seen == nullptr) ++used_;
            table.slots[i].value.store(value, std::memory_order_release);
            table.slots[i].key.store(key, std::memory_order_release);
            return;
        }
    }
    // The old table is left to readers that are in it; the sizes of all tables together are twice the newest's.
    Table* grow(Table* old) {
        const std::size_t size = old == nullptr ? 64 : (old->mask + 1) * 2;
        auto* table = new Table{size - 1, new Slot[size]};
        used_ = 0;
        for (std::size_t i = 0; old != nullptr && i <= old->mask; ++i)
            if (T* value = old->slots[i].value.load(std::memory_order_relaxed))
                place(*table, old->slots[i].key.load(std::memory_order_relaxed), value);
        table_.store(table, std::memory_order_release);
        return table;
    }

    std::atomic<Table*> table_{nullptr};
    std::size_t used_ = 0;
};

}  // namespace weft::cudart
