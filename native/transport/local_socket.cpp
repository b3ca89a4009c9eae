#include "transport/local_socket.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mapping.h"
#include "transport/waiting.h"

namespace weft::transport {

namespace {

constexpr std::size_t kMaxWaitingFiles = 256;  // segments announced on the socket but not yet by a frame
constexpr int kMaxReadsPerDrain = 64;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::uint64_t key_of(std::uint8_t kind, std::uint32_t segment) { return std::uint64_t{kind} << 32 | segment; }

// Takes the descriptors out of a message: the first is kept, more than one is not what our peer sends.
UniqueFd take_descriptor(msghdr& message) {
    UniqueFd kept;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            UniqueFd owned(fd);
            if (!kept) kept = std::move(owned);
        }
    }
    return kept;
}

Status wait_for(int fd, short events, Clock::time_point deadline) {
    for (;;) {
        pollfd look{fd, events, 0};
        PollTimeout timeout(deadline);
        const int count = ::ppoll(&look, 1, timeout.get(), nullptr);
        if (count > 0) return Status::ok();
        if (count == 0)
            return Status::error(ErrorCode::unavailable, "the peer did not answer on the Unix socket in time");
        if (errno != EINTR) return Status::from_errno("ppoll", errno);
    }
}

}  // namespace

void LocalSocket::send_bell() {
    [[maybe_unused]] ssize_t sent = ::send(fd_.get(), &kBell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status LocalSocket::send_file(const FileRecord& record, int file, Clock::time_point deadline) {
    iovec part{const_cast<FileRecord*>(&record), sizeof record};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
    for (;;) {
        const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent == static_cast<ssize_t>(sizeof record)) return Status::ok();
        if (sent >= 0) return Status::error(ErrorCode::io, "the Unix socket took only a part of a record");
        if (errno == EINTR) continue;
        // ETOOMANYREFS: too many descriptors of this user are in flight.
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return Status::error(ErrorCode::unavailable, std::string("sendmsg: ") + std::strerror(errno));
        if (Status status = wait_for(fd_.get(), POLLOUT, deadline); !status) return status;
    }
}

Status LocalSocket::drain() {
    std::lock_guard guard(lock_);
    Status status;
    for (int reads = 0; reads < kMaxReadsPerDrain && read_some(&status); ++reads) {
    }
    return status;
}

// One read. False when there is no more to read now.
bool LocalSocket::read_some(Status* status) {
    std::byte data[512];
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    iovec part{data, sizeof data};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        if (errno == EINTR) return true;
        if (errno != EAGAIN && errno != EWOULDBLOCK) ended_.store(true, std::memory_order_release);
        return false;
    }
    if (got == 0) {
        ended_.store(true, std::memory_order_release);
        return false;
    }
    if (UniqueFd fd = take_descriptor(message)) passed_ = std::move(fd);
    *status = parse(data, static_cast<std::size_t>(got));
    return status->is_ok();
}

Status LocalSocket::parse(const std::byte* data, std::size_t size_bytes) {
    while (size_bytes > 0) {
        if (partial_bytes_ == 0 && static_cast<std::uint8_t>(*data) == kBell) {
            ++data, --size_bytes;
            continue;
        }
        const std::size_t take = std::min(size_bytes, sizeof partial_ - partial_bytes_);
        std::memcpy(partial_ + partial_bytes_, data, take);
        partial_bytes_ += take;
        data += take;
        size_bytes -= take;
        if (partial_bytes_ < sizeof partial_) return Status::ok();
        if (Status status = keep_record(); !status) return status;
    }
    return Status::ok();
}

Status LocalSocket::keep_record() {
    ReceivedFile file;
    std::memcpy(&file.record, partial_, sizeof partial_);
    file.fd = std::move(passed_);
    partial_bytes_ = 0;
    const bool known = file.record.kind == kSegmentRecord || file.record.kind == kRingsRecord;
    if (!known || file.record.version != kRecordVersion || !file.fd) {
        return Status::error(ErrorCode::protocol, "unknown record on the Unix socket");
    }
    if (files_.size() >= kMaxWaitingFiles)
        return Status::error(ErrorCode::protocol, "too many segments without a frame");
    const std::uint64_t key = key_of(file.record.kind, file.record.segment);
    files_.insert_or_assign(key, std::move(file));
    return Status::ok();
}

std::optional<ReceivedFile> LocalSocket::take_file(std::uint8_t kind, std::uint32_t segment) {
    std::lock_guard guard(lock_);
    auto found = files_.find(key_of(kind, segment));
    if (found == files_.end()) return std::nullopt;
    ReceivedFile file = std::move(found->second);
    files_.erase(found);
    return file;
}

Result<ReceivedFile> LocalSocket::await_file(std::uint8_t kind, std::uint32_t segment, Clock::time_point deadline) {
    for (;;) {
        if (Status status = drain(); !status) return status;
        if (auto file = take_file(kind, segment)) return std::move(*file);
        if (ended()) return Status::error(ErrorCode::unavailable, "the peer closed the Unix socket");
        if (Status status = wait_for(fd_.get(), POLLIN, deadline); !status) return status;
    }
}

void LocalSocket::shut_down() {
    if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
}

Status check_sealed_file(int fd, std::size_t size_bytes) {
    struct statfs file_system{};
    if (::fstatfs(fd, &file_system) != 0) return Status::from_errno("fstatfs", errno);
    // Pages of a hugetlb file can be missing when they are touched (SIGBUS); those of tmpfs cannot once the size is
    // sealed.
    if (file_system.f_type != TMPFS_MAGIC)
        return Status::error(ErrorCode::protocol, "the shared memory is not a memfd");
    const int seals = ::fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals)
        return Status::error(ErrorCode::protocol, "the shared memory is not sealed");
    struct stat about{};
    if (::fstat(fd, &about) != 0) return Status::from_errno("fstat", errno);
    if (static_cast<std::uint64_t>(about.st_size) < size_bytes) {
        return Status::error(ErrorCode::protocol, "the shared memory has " + std::to_string(about.st_size) +
                                                      " bytes instead of " + std::to_string(size_bytes));
    }
    return Status::ok();
}

Result<UniqueFd> make_sealed_file(const char* label, std::size_t size_bytes) {
    auto file = make_memory_file(label, size_bytes, true);
    if (!file) return file.take_status();
    if (::fcntl(file->get(), F_ADD_SEALS, kSeals) != 0) return Status::from_errno("fcntl(F_ADD_SEALS)", errno);
    return file;
}

}  // namespace weft::transport
