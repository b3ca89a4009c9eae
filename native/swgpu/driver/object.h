// Objects behind handles: counted by reference, found by number. A handle is tag(8) | generation(24) | index(32), never
// a pointer, so that a stale or made-up handle is refused and never followed. Design note:
// docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weft::swdriver {

enum class Kind : std::uint8_t {
    context = 1,
    stream,
    event,
    module,
    function,
    library,
    kernel,
    link,
    memory,
    pool,
    array,
    texture
};

class Object {
  public:
    explicit Object(Kind kind) : kind_(kind) {}
    virtual ~Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    Kind kind() const { return kind_; }
    std::uint64_t handle() const { return handle_.load(std::memory_order_relaxed); }  // 0: not published, or withdrawn
    template <typename T>
    T handle_as() const {
        return reinterpret_cast<T>(handle());
    }

    void acquire() { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

  private:
    friend class HandleTable;
    std::atomic<std::uint32_t> references_{0};
    const Kind kind_;
    std::atomic<std::uint64_t> handle_{0};
};

template <typename T>
class Ref {
  public:
    Ref() = default;
    Ref(T* object) : object_(object) {  // NOLINT(google-explicit-constructor)
        if (object_ != nullptr) object_->acquire();
    }
    Ref(const Ref& other) : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_ != nullptr) object_->release();
    }
    // Takes over a reference that was counted already.
    static Ref adopt(T* object) {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }
    bool operator==(const Ref& other) const { return object_ == other.object_; }

  private:
    T* object_ = nullptr;
};

// One table for all kinds; every method is thread-safe.
class HandleTable {
  public:
    static HandleTable& instance();

    // Publishes the object (the table holds a reference) and returns its handle.
    std::uint64_t insert(Object* object);
    // Withdraws the handle; the object dies with its last reference. Null if the handle is not alive or of another
    // kind.
    Ref<Object> remove(std::uint64_t handle, Kind kind);
    Ref<Object> find(std::uint64_t handle, Kind kind);

    template <typename T, typename H>
    Ref<T> find(H handle) {
        return cast<T>(find(reinterpret_cast<std::uint64_t>(handle), T::kKind));
    }
    template <typename T, typename H>
    Ref<T> remove(H handle) {
        return cast<T>(remove(reinterpret_cast<std::uint64_t>(handle), T::kKind));
    }

  private:
    struct Slot;
    Slot* slot_of(std::uint64_t handle, Kind kind);
    template <typename T>
    static Ref<T> cast(Ref<Object> object) {
        return Ref<T>(static_cast<T*>(object.get()));
    }

    struct State;
    explicit HandleTable(State* state) : state_(state) {}
    State* const state_;
};

template <typename T, typename H>
Ref<T> find(H handle) {
    return HandleTable::instance().find<T>(handle);
}

}  // namespace weft::swdriver
