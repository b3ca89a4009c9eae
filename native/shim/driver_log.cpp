#include "shim/driver_log.h"

#include <string>

#include "shim/log.h"

namespace weft::shim {

DriverLog& driver_log() {
    static DriverLog& log = *new DriverLog;
    return log;
}

std::uint64_t DriverLog::add(CUlogsCallback callback, void* data) {
    std::lock_guard lock(mutex_);
    if (listeners_.size() == kMaxCallbacks) return 0;
    listeners_.push_back({++next_, callback, data});
    return next_;
}

bool DriverLog::remove(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    return std::erase_if(listeners_, [number](const Listener& listener) { return listener.number == number; }) != 0;
}

// The callbacks run without the lock: they may register and unregister.
void DriverLog::tell(CUlogLevel level, std::string_view text) {
    std::vector<Listener> listeners;
    {
        std::lock_guard lock(mutex_);
        listeners = listeners_;
    }
    if (listeners.empty()) return log_line(text);
    std::string message(text);
    for (const Listener& listener : listeners) listener.callback(listener.data, level, message.data(), message.size());
}

}  // namespace weft::shim
