// What kernels print: kept in a buffer of CU_LIMIT_PRINTF_FIFO_SIZE bytes per context until the next synchronisation
// point, then written to the process's standard output and error. Where it is full the oldest lines make room, as on a
// device. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "swgpu/engine/engine.h"

namespace weft::swdriver {

class Context;

class DeviceOutput final : public engine::OutputSink {
  public:
    void write(std::string_view text) override { add(text, false); }
    void write_error(std::string_view text) override { add(text, true); }
    void set_limit(std::size_t bytes) { limit_bytes_.store(bytes); }
    // Writes what is there.
    void flush();

  private:
    struct Line {
        std::string text;
        bool is_error;
    };
    void add(std::string_view text, bool is_error);

    std::atomic<std::size_t> limit_bytes_{1 << 20};
    std::atomic<bool> has_text_{false};
    std::mutex mutex_;
    std::deque<Line> lines_;
    std::size_t bytes_ = 0;
};

// A synchronisation point of the calling thread's current context: at its end the output is written, also when the call
// fails.
class OutputPoint {
  public:
    OutputPoint() = default;
    OutputPoint(const OutputPoint&) = delete;
    ~OutputPoint();
};

}  // namespace weft::swdriver
