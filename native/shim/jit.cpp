#include "shim/jit.h"

#include <algorithm>
#include <cstring>

namespace weft::shim {

JitRequest::JitRequest(unsigned count, CUjit_option* options, void** values) {
    if (options == nullptr || values == nullptr) return;
    for (unsigned i = 0; i < count; ++i) {
        const auto number = reinterpret_cast<std::uintptr_t>(values[i]);
        switch (options[i]) {
            case CU_JIT_INFO_LOG_BUFFER: info_.buffer = static_cast<char*>(values[i]); break;
            case CU_JIT_ERROR_LOG_BUFFER: error_.buffer = static_cast<char*>(values[i]); break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                info_.size_bytes = static_cast<unsigned>(number);
                info_.size_value = &values[i];
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                error_.size_bytes = static_cast<unsigned>(number);
                error_.size_value = &values[i];
                break;
            case CU_JIT_WALL_TIME: wall_time_ = &values[i]; break;
            // Pointers into this process mean nothing elsewhere.
            case CU_JIT_GLOBAL_SYMBOL_NAMES:
            case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
            case CU_JIT_GLOBAL_SYMBOL_COUNT:
            case CU_JIT_REFERENCED_KERNEL_NAMES:
            case CU_JIT_REFERENCED_KERNEL_COUNT:
            case CU_JIT_REFERENCED_VARIABLE_NAMES:
            case CU_JIT_REFERENCED_VARIABLE_COUNT: break;
            default:
                if (forwarded_.size() < wire::kMaxJitOptions)
                    forwarded_.push_back({static_cast<std::uint32_t>(options[i]), static_cast<std::uint64_t>(number)});
        }
    }
}

void JitRequest::Log::fill(const std::string& text) const {
    if (buffer == nullptr || size_bytes == 0) return;
    const std::size_t length = std::min(text.size(), size_bytes - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
    if (size_value != nullptr) *size_value = reinterpret_cast<void*>(length);
}

void JitRequest::deliver(const std::string& info_log, const std::string& error_log) {
    info_.fill(info_log);
    error_.fill(error_log);
    if (wall_time_ != nullptr) {
        const float none = 0;
        std::memcpy(wall_time_, &none, sizeof none);
    }
}

}  // namespace weft::shim
