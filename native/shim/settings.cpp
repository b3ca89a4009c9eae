#include "shim/settings.h"

#include <cstdlib>

namespace weft::shim {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool parse_secret(const std::string& text, std::array<std::uint8_t, 32>* secret) {
    if (text.size() != 2 * secret->size()) return false;
    for (std::size_t i = 0; i < secret->size(); ++i) {
        const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        (*secret)[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return true;
}

Status bad_variable(const char* name, const std::string& value) {
    return Status::error(ErrorCode::invalid_argument,
                         std::string(name) + "=" + value + " is not usable; start the program with `weft run`");
}

}  // namespace

Result<Settings> read_settings() {
    Settings settings;
    settings.server_address = variable("WEFT_SERVER_ADDRESS");
    settings.server_socket = variable("WEFT_SERVER_SOCKET");
    const std::string path = variable("WEFT_PATH");
    settings.shared_memory = path == "shm";
    if (path.empty() || (settings.shared_memory ? settings.server_socket : settings.server_address).empty())
        return Status::error(ErrorCode::not_found,
                             "no session in the environment; start the program with `weft run -- PROGRAM`");
    if (path != "shm" && path != "tcp") return bad_variable("WEFT_PATH", path);
    if (!parse_secret(variable("WEFT_SESSION_SECRET"), &settings.secret))
        return bad_variable("WEFT_SESSION_SECRET", "(hidden)");
    settings.stats_path = variable("WEFT_STATS");
    settings.trace_path = variable("WEFT_TRACE");
    settings.record_path = variable("WEFT_RECORD");
    if (const std::string timeout = variable("WEFT_TIMEOUT_S"); !timeout.empty()) {
        settings.timeout_s = std::strtod(timeout.c_str(), nullptr);
        if (!(settings.timeout_s >= 0.1 && settings.timeout_s <= 3600)) return bad_variable("WEFT_TIMEOUT_S", timeout);
    }
    return settings;
}

}  // namespace weft::shim
