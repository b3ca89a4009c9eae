// Lines of the driver on the other side: they go to the callbacks that the program registered (cuLogsRegisterCallback),
// or to its stderr while there is none. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "gen/cuda_abi.h"

namespace weft::shim {

class DriverLog {
  public:
    static constexpr std::size_t kMaxCallbacks = 64;
    // A number that is never 0 and never used twice; 0 when there are too many.
    std::uint64_t add(CUlogsCallback callback, void* data);
    bool remove(std::uint64_t number);
    void tell(CUlogLevel level, std::string_view text);

  private:
    struct Listener {
        std::uint64_t number;
        CUlogsCallback callback;
        void* data;
    };
    std::mutex mutex_;
    std::vector<Listener> listeners_;
    std::uint64_t next_ = 0;
};

DriverLog& driver_log();

}  // namespace weft::shim
