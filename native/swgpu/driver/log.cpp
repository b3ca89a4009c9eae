// Keeps the registrations and the newest messages. Everything lives on the heap for the whole life of the process.
#include "swgpu/driver/log.h"

#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::swdriver {
namespace {

constexpr std::size_t kKeptBytes = 25600;  // what the driver manual gives as the size of the buffer

struct State {
    std::mutex mutex;
    std::map<std::uint64_t, std::pair<LogCallback, void*>> callbacks;
    std::uint64_t next_registration = 1;
    std::deque<std::string> kept;
    std::size_t kept_bytes = 0;
    std::uint32_t end = 0;  // number of messages ever logged
};

State& state() {
    static State& instance = *new State;
    return instance;
}

void keep(State& log, std::string_view message) {
    log.kept.emplace_back(message);
    log.kept_bytes += message.size() + 1;
    ++log.end;
    while (log.kept_bytes > kKeptBytes && log.kept.size() > 1) {
        log.kept_bytes -= log.kept.front().size() + 1;
        log.kept.pop_front();
    }
}

void write_stderr(std::string_view message) {
    std::string line = "weft-swgpu: ";
    line.append(message).push_back('\n');
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void log_message(LogLevel level, std::string_view message) {
    std::vector<std::pair<LogCallback, void*>> callbacks;
    {
        std::lock_guard lock(state().mutex);
        keep(state(), message);
        for (const auto& [number, callback] : state().callbacks) callbacks.push_back(callback);
    }
    const std::string text(message);
    for (const auto& [callback, data] : callbacks) callback(data, level, text.c_str(), text.size());
    if (callbacks.empty()) write_stderr(message);
}

std::uint64_t log_register(LogCallback callback, void* data) {
    std::lock_guard lock(state().mutex);
    const std::uint64_t registration = state().next_registration++;
    state().callbacks.emplace(registration, std::pair{callback, data});
    return registration;
}

bool log_unregister(std::uint64_t registration) {
    std::lock_guard lock(state().mutex);
    return state().callbacks.erase(registration) != 0;
}

std::uint32_t log_end() {
    std::lock_guard lock(state().mutex);
    return state().end;
}

std::string log_read_from(std::uint32_t* iterator) {
    std::lock_guard lock(state().mutex);
    const std::uint32_t oldest = state().end - static_cast<std::uint32_t>(state().kept.size());
    std::string text;
    if (*iterator < oldest) text = "(older messages are no longer kept)\n";
    for (std::uint32_t i = *iterator < oldest ? oldest : *iterator; i < state().end; ++i)
        text.append(state().kept[i - oldest]).push_back('\n');
    *iterator = state().end;
    return text;
}

}  // namespace weft::swdriver
