#include "shim/log.h"

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string>

namespace weft::shim {

void log_line(std::string_view text) {
    const int saved_errno = errno;
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    std::string line = "weft: ";
    line.append(text).push_back('\n');
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    errno = saved_errno;
}

void log_once(std::string_view key, std::string_view text) {
    static std::mutex& mutex = *new std::mutex;
    static auto& seen = *new std::set<std::string, std::less<>>;
    {
        std::lock_guard lock(mutex);
        if (seen.contains(key) || seen.size() >= 4096) return;
        seen.emplace(key);
    }
    log_line(text);
}

}  // namespace weft::shim
