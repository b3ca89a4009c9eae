#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace weft {

namespace {

constexpr int kUnset = -1;
constexpr std::string_view kNames[] = {"error", "warn", "info", "debug", "trace"};
constinit std::atomic<int> current_level{kUnset};
constinit std::atomic<int> log_descriptor{STDERR_FILENO};

bool needs_quotes(std::string_view value) {
    if (value.empty()) return true;
    for (char c : value) {
        if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=') return true;
    }
    return false;
}

void append_value(std::string& line, std::string_view value) {
    if (!needs_quotes(value)) {
        line += value;
        return;
    }
    line += '"';
    for (char c : value) {
        if (c == '"' || c == '\\') line += '\\';
        line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;  // one event stays one line
    }
    line += '"';
}

}  // namespace

LogLevel parse_log_level(std::string_view name) {
    for (int level = 0; level < static_cast<int>(std::size(kNames)); ++level) {
        if (kNames[level] == name) return static_cast<LogLevel>(level);
    }
    return LogLevel::warn;
}

LogLevel log_level() {
    int level = current_level.load(std::memory_order_relaxed);
    if (level == kUnset) {
        const char* name = std::getenv("WEFT_LOG");
        level = static_cast<int>(parse_log_level(name == nullptr ? "" : name));
        current_level.store(level, std::memory_order_relaxed);
    }
    return static_cast<LogLevel>(level);
}

void set_log_descriptor(int descriptor) { log_descriptor.store(descriptor, std::memory_order_relaxed); }

void set_log_level(LogLevel level) { current_level.store(static_cast<int>(level), std::memory_order_relaxed); }

std::string format_log_line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    std::string line = "weft: ";
    line += kNames[static_cast<int>(level)];
    line += ' ';
    line += event;
    for (const LogField& field : fields) {
        line += ' ';
        line += field.key;
        line += '=';
        append_value(line, field.value);
    }
    return line;
}

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    if (!log_enabled(level)) return;
    int saved = errno;
    std::string line = format_log_line(level, event, fields);
    line += '\n';
    [[maybe_unused]] ssize_t written =
        ::write(log_descriptor.load(std::memory_order_relaxed), line.data(), line.size());
    errno = saved;
}

}  // namespace weft
