// The shim's one thread per session: runs `turn` while there is something to do, spins politely for a moment, then
// sleeps. It blocks all signals. `poke` never sleeps and costs a system call only when the thread is asleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/status.h"

namespace weft::shim {

class HelperThread {
  public:
    // turn(): does what there is to do; false if there was nothing.
    Status start(std::function<bool()> turn);
    // Something may be there to do; the thread looks within a few microseconds if awake, else it is woken.
    void poke();
    // True while it is sure to look again without being poked.
    bool is_awake() const { return state_.load(std::memory_order_seq_cst) == kAwake; }

  private:
    static constexpr std::uint32_t kAsleep = 0, kAwake = 1, kWaking = 2;
    static void* main(void* self);
    void run();
    bool spin();

    std::function<bool()> turn_;
    std::atomic<std::uint32_t> state_{kAsleep};  // also the futex word
};

}  // namespace weft::shim
