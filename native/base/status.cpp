#include "base/status.h"

#include <cstring>

namespace weft {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument: return "invalid argument";
        case ErrorCode::not_found: return "not found";
        case ErrorCode::permission_denied: return "permission denied";
        case ErrorCode::protocol: return "protocol error";
        case ErrorCode::version: return "version mismatch";
        case ErrorCode::unavailable: return "unavailable";
        case ErrorCode::out_of_memory: return "out of memory";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::io: return "input/output error";
        case ErrorCode::internal: return "internal error";
    }
    return "unknown error";
}

Status Status::error(ErrorCode code, std::string text) {
    Status status;
    status.error_.reset(new Error{code, std::move(text)});
    return status;
}

Status Status::from_errno(std::string_view name, int error_number) {
    char buffer[128];
    const char* text = strerror_r(error_number, buffer, sizeof buffer);
    return error(ErrorCode::io, std::string(name) + ": " + text);
}

}  // namespace weft
