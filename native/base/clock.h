// Time for deadlines and measurements. It must never read the wall clock: that one jumps.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

using Clock = std::chrono::steady_clock;

inline constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

inline std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

// Tells the processor that this is a waiting loop.
inline void cpu_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace weft
