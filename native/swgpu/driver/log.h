// The driver's log: lines go to the callbacks of cuLogsRegisterCallback, or to stderr while none is registered, and
// into a bounded buffer for cuLogsDumpTo*. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::swdriver {

enum class LogLevel : int { error = 0, warning = 1 };  // values of CUlogLevel
using LogCallback = void (*)(void* data, LogLevel level, const char* message, std::size_t length);

// One line without a newline. Never called with a lock of the driver held: a callback may call the driver.
void log_message(LogLevel level, std::string_view message);

std::uint64_t log_register(LogCallback callback, void* data);  // number of the registration, never 0
bool log_unregister(std::uint64_t registration);

std::uint32_t log_end();  // iterator behind the newest message
// Text of all messages from *iterator on, each with its newline; moves the iterator to the end.
std::string log_read_from(std::uint32_t* iterator);

}  // namespace weft::swdriver
