// See status_line.h.
#include "executor/status_line.h"

#include <unistd.h>

#include <cerrno>

#include "executor/inventory.h"

namespace weft::executor {

std::string started_line(const Session& session) {
    std::string devices;
    for (const wire::DeviceInfo& device : session.devices()) {
        devices += (devices.empty() ? "" : ",") + std::string("{\"ordinal\":") + std::to_string(device.ordinal) +
                   ",\"name\":" + json_string(device.name) +
                   ",\"memory_bytes\":" + std::to_string(device.total_memory_bytes) + "}";
    }
    return "{\"event\":\"started\",\"pid\":" + std::to_string(::getpid()) + ",\"devices\":[" + devices + "]}";
}

std::string ended_line(std::string_view reason, const Session* session, const transport::Counters& traffic) {
    std::string counters = "\"bytes_received\":" + std::to_string(traffic.bytes_received) +
                           ",\"bytes_sent\":" + std::to_string(traffic.bytes_sent);
    if (session != nullptr) {
        const SessionCounters& c = session->counters();
        const auto add = [&](const char* name, std::uint64_t value) {
            counters += ",\"" + std::string(name) + "\":" + std::to_string(value);
        };
        add("frames", c.frames);
        add("launches", c.launches);
        add("replies", session->replies());
        add("errors", c.errors);
        add("frames_parked", c.frames_parked);
        add("copied_in_bytes", c.copied_in_bytes);
        add("copied_out_bytes", c.copied_out_bytes);
        add("peak_memory_bytes", session->peak_memory_bytes());
        add("window_base", session->window_base());
    }
    return "{\"event\":\"ended\",\"reason\":" + json_string(reason) + ",\"counters\":{" + counters + "}}";
}

void write_status(int fd, const std::string& line) {
    if (fd < 0) return;
    const std::string text = line + "\n";
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t put = ::write(fd, text.data() + done, text.size() - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return;
        done += static_cast<std::size_t>(put);
    }
}

}  // namespace weft::executor
