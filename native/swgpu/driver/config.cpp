// Parses the WEFT_SWGPU_* variables. Must not log through the driver's callbacks: none can be registered yet.
#include "swgpu/driver/config.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "swgpu/driver/log.h"

namespace weft::swdriver {
namespace {

constexpr std::uint64_t kMemoryStep = 2ull << 20;

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<std::uint64_t> number(const char* variable, std::uint64_t low, std::uint64_t high) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    if (errno == 0 && *end == '\0' && *text != '-' && value >= low && value <= high) return value;
    log_message(LogLevel::warning, std::string(variable) + "=" + text + " is ignored: expected a number from " +
                                       std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
}

void read_capability(Settings& settings) {
    const char* text = std::getenv("WEFT_SWGPU_COMPUTE_CAPABILITY");
    if (text == nullptr || *text == '\0') return;
    char* end = nullptr;
    const long major = std::strtol(text, &end, 10);
    const bool dotted = *end == '.' && end[1] >= '0' && end[1] <= '9' && end[2] == '\0';
    if (end != text && dotted && major >= 5 && major <= 12) {
        settings.capability_major = static_cast<int>(major);
        settings.capability_minor = end[1] - '0';
        return;
    }
    log_message(LogLevel::warning,
                std::string("WEFT_SWGPU_COMPUTE_CAPABILITY=") + text + " is ignored: expected 5.0 to 12.9");
}

}  // namespace

Settings read_settings() {
    Settings settings;
    settings.threads = usable_cores();
    if (auto value = number("WEFT_SWGPU_DEVICES", 1, 16)) settings.device_count = static_cast<int>(*value);
    if (auto value = number("WEFT_SWGPU_MEMORY_BYTES", kMemoryStep, 1ull << 40))
        settings.memory_bytes = *value / kMemoryStep * kMemoryStep;
    if (auto value = number("WEFT_SWGPU_THREADS", 1, 256)) settings.threads = static_cast<int>(*value);
    read_capability(settings);
    if (const char* name = std::getenv("WEFT_SWGPU_NAME"); name != nullptr && *name != '\0') settings.name = name;
    return settings;
}

}  // namespace weft::swdriver
