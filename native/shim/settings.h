// What the environment tells the shim. Read once, at cuInit; written by `weft run` (docs/design/server.md lists the
// variables).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace weft::shim {

struct Settings {
    std::string server_address;             // WEFT_SERVER_ADDRESS host:port
    std::string server_socket;              // WEFT_SERVER_SOCKET: abstract Unix socket name without the leading NUL
    bool shared_memory = false;             // WEFT_PATH=shm|tcp
    std::array<std::uint8_t, 32> secret{};  // WEFT_SESSION_SECRET, 64 hex digits
    std::string stats_path;                 // WEFT_STATS
    std::string trace_path;                 // WEFT_TRACE
    std::string record_path;                // WEFT_RECORD
    double timeout_s = 5;                   // WEFT_TIMEOUT_S: connecting, and silence of a dead peer
};

// not_found: the program was not started by `weft run`. invalid_argument names the variable.
Result<Settings> read_settings();

}  // namespace weft::shim
