// Around every exported driver call: keeps errno, counts the call, and traces it when `weft run --trace` asks for it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "gen/cuda_abi.h"
#include "gen/call_ids.h"
#include "shim/stats_page.h"

namespace weft::shim {

// Set once at cuInit; null while there is nothing to count or trace.
extern StatsPage* g_stats;
extern bool g_tracing;

class CallScope {
  public:
    explicit CallScope(CallId call) : call_(call), errno_(errno) {
        if (g_stats != nullptr) [[unlikely]]
            g_stats->calls.fetch_add(1, std::memory_order_relaxed);
        if (g_tracing) [[unlikely]]
            start_trace();
    }
    CallScope(const CallScope&) = delete;
    CUresult finish(CUresult result) {
        if (g_tracing) [[unlikely]]
            end_trace(result);
        errno = errno_;
        return result;
    }

    // Time spent waiting for an answer, credited to the call under way on this thread.
    class WaitTimer {
      public:
        WaitTimer();
        ~WaitTimer();

      private:
        std::int64_t start_ns_ = 0;
    };

  private:
    void start_trace();
    void end_trace(CUresult result);

    CallId call_;
    int errno_;
    std::int64_t start_ns_ = 0;
};

// Maps the page that `weft run` shares; nothing is counted when the path is empty or cannot be mapped.
void open_stats(const std::string& path);
// Opens the trace file; one line per call: JSON with call, thread, start_us, duration_us, wait_us, result.
bool open_trace(const char* path);

}  // namespace weft::shim
