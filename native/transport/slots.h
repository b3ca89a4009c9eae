// Payload slots of one direction: the sender lends a slot with a frame, the receiver gives it back at any time, in any
// order. Neither end believes the other: the receiver refuses a slot that it still holds, the sender ignores returns of
// slots that it did not lend. A set of slots is one 64-bit word. docs/design/transport.md.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

namespace weft::transport {

inline constexpr std::uint32_t kMaxSlots = 64;

inline constexpr std::uint64_t slot_bit(std::uint32_t slot) { return std::uint64_t{1} << slot; }
inline constexpr std::uint64_t all_slots(std::uint32_t count) {
    return count >= 64 ? ~std::uint64_t{0} : slot_bit(count) - 1;
}

// The sender's end, of one thread; `returned` is shared with the receiver.
class SlotLender {
  public:
    SlotLender(std::atomic<std::uint64_t>* returned, std::uint32_t count)
        : returned_(returned), free_(all_slots(count)) {}

    std::optional<std::uint32_t> acquire() {
        if (free_ == 0 && !collect()) {
            wanted_.store(true, std::memory_order_relaxed);
            return std::nullopt;
        }
        wanted_.store(false, std::memory_order_relaxed);
        // The lowest one: few slots in turn stay in the cache when the receiver keeps up.
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(free_));
        free_ &= free_ - 1;
        return slot;
    }
    void lend(std::uint32_t slot) { lent_ |= slot_bit(slot); }
    void discard(std::uint32_t slot) { free_ |= slot_bit(slot); }
    // Any thread: slots came back since acquire found none.
    bool slot_came() const {
        return wanted_.load(std::memory_order_relaxed) && returned_->load(std::memory_order_relaxed) != 0;
    }

  private:
    bool collect() {
        const std::uint64_t back = returned_->exchange(0, std::memory_order_acquire) & lent_;
        lent_ &= ~back;
        free_ |= back;
        return back != 0;
    }

    std::atomic<std::uint64_t>* returned_;
    std::uint64_t free_;
    std::uint64_t lent_ = 0;
    std::atomic<bool> wanted_{false};
};

// The receiver's end; take by one thread, give_back by any.
class SlotBorrower {
  public:
    SlotBorrower(std::atomic<std::uint64_t>* returned, std::uint32_t count) : returned_(returned), count_(count) {}

    bool take(std::uint32_t slot) {
        if (slot >= count_) return false;
        return (held_.fetch_or(slot_bit(slot), std::memory_order_relaxed) & slot_bit(slot)) == 0;
    }
    bool give_back(std::uint32_t slot) {
        if (slot >= count_) return false;
        const std::uint64_t bit = slot_bit(slot);
        if ((held_.fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) return false;
        returned_->fetch_or(bit, std::memory_order_seq_cst);
        return true;
    }

  private:
    std::atomic<std::uint64_t>* returned_;
    std::uint32_t count_;
    std::atomic<std::uint64_t> held_{0};
};

}  // namespace weft::transport
