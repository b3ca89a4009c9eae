// JIT options of a module load or link: what is forwarded, and the caller's log buffers, which are filled here.
#pragma once

#include <string>

#include "gen/cuda_abi.h"
#include "wire/describe.h"

namespace weft::shim {

class JitRequest {
  public:
    // The arrays as the driver call got them; values are passed by value or by pointer as each option says (CUDA
    // manual, CUjit_option).
    JitRequest(unsigned count, CUjit_option* options, void** values);
    const wire::JitOptions& forwarded() const { return forwarded_; }
    bool wants_error_log() const { return error_.buffer != nullptr; }
    // Copies the logs into the caller's buffers and their sizes into the option values.
    void deliver(const std::string& info_log, const std::string& error_log);

  private:
    struct Log {
        char* buffer = nullptr;
        std::size_t size_bytes = 0;
        void** size_value = nullptr;
        void fill(const std::string& text) const;
    };
    wire::JitOptions forwarded_;
    Log info_, error_;
    void** wall_time_ = nullptr;
};

}  // namespace weft::shim
