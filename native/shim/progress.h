// Counts work: every frame that makes the GPU do something gets the next number; fences and synchronisations tell how
// far it is.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::shim {

class Progress {
  public:
    // Call with the append role held, so that numbers rise in the order of the stream of frames.
    std::uint64_t next() { return submitted_.fetch_add(1, std::memory_order_relaxed) + 1; }
    std::uint64_t submitted() const { return submitted_.load(std::memory_order_relaxed); }
    std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
    bool is_idle() const { return done() >= submitted(); }
    // All work up to `work` is complete.
    void complete(std::uint64_t work) {
        std::uint64_t before = done_.load(std::memory_order_relaxed);
        while (before < work && !done_.compare_exchange_weak(before, work, std::memory_order_release)) {
        }
    }

  private:
    std::atomic<std::uint64_t> submitted_{0};
    std::atomic<std::uint64_t> done_{0};
};

}  // namespace weft::shim
