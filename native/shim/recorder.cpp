#include "shim/recorder.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "shim/log.h"
#include "wire/recording.h"

namespace weft::shim {

Result<std::unique_ptr<Recorder>> Recorder::open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0) return Status::from_errno("cannot record to " + path, errno);
    const wire::RecordingHeader header;
    if (::write(descriptor, &header, sizeof header) != sizeof header) {
        ::close(descriptor);
        return Status::from_errno("cannot record to " + path, errno);
    }
    return std::unique_ptr<Recorder>(new Recorder(descriptor));
}

void Recorder::frame(std::span<const std::byte> frame, std::span<const std::byte> payload) {
    if (failed_) return;
    wire::RecordingEntry entry;
    entry.frame_bytes = static_cast<std::uint32_t>(frame.size());
    entry.payload_bytes = static_cast<std::uint32_t>(payload.size());
    iovec parts[] = {{&entry, sizeof entry},
                     {const_cast<std::byte*>(frame.data()), frame.size()},
                     {const_cast<std::byte*>(payload.data()), payload.size()}};
    const auto size = static_cast<ssize_t>(sizeof entry + frame.size() + payload.size());
    if (::writev(descriptor_, parts, 3) == size) return;
    failed_ = true;
    log_line(std::string("the recording stops here: ") + std::strerror(errno));
}

}  // namespace weft::shim
