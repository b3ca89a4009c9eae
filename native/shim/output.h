// What kernels print, on its way to the program's standard output and error. Received by whichever thread receives,
// written by the thread whose call synchronised: a program may hold stdio's lock while it waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace weft::shim {

class Output {
  public:
    // Beyond this what comes is dropped until somebody synchronises.
    static constexpr std::size_t kMaxBytes = 16u << 20;

    // kind: 1 standard output, 2 standard error. Never blocks.
    void add(std::uint32_t kind, std::string_view text);
    // Writes what has come, after what the program itself has printed by stdio.
    void write() {
        if (has_text_.load(std::memory_order_relaxed)) [[unlikely]]
            write_now();
    }

  private:
    void write_now();

    std::atomic<bool> has_text_{false};
    std::mutex mutex_;        // a leaf
    std::mutex write_mutex_;  // one writer at a time: pieces keep their order
    std::string text_[2];
};

}  // namespace weft::shim
