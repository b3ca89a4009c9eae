// One event per line on stderr: `weft: LEVEL EVENT key=value ...`. A line is written by one system call, so lines of
// several threads and processes do not mix. It must not log payloads or secrets. The level comes from WEFT_LOG (default
// warn).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace weft {

enum class LogLevel : int { error, warn, info, debug, trace };

// error|warn|info|debug|trace; anything else is `warn`.
LogLevel parse_log_level(std::string_view name);
LogLevel log_level();
void set_log_level(LogLevel level);
// Where lines go from now on; default: standard error. The descriptor stays open.
void set_log_descriptor(int descriptor);

struct LogField {
    std::string_view key;
    std::string value;
    LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
    LogField(std::string_view k, const char* v) : key(k), value(v) {}
    LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
    template <typename Integer>
    LogField(std::string_view k, Integer v) : key(k), value(std::to_string(v)) {}
};

inline bool log_enabled(LogLevel level) { return level <= log_level(); }
// `event` is a fixed lower-case name. errno stays as it was.
void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
// The line without its end, as log_event writes it (for tests and other sinks).
std::string format_log_line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

}  // namespace weft
