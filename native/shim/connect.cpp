#include "shim/connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "transport/factory.h"
#include "wire/preamble.h"

namespace weft::shim {
namespace {

using transport::Clock;

int remaining_ms(Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return left > 0 ? static_cast<int>(left) + 1 : 0;
}

// Waits for `events`; false at the deadline.
bool wait_ready(int fd, short events, Clock::time_point deadline) {
    for (;;) {
        pollfd entry{fd, events, 0};
        const int ready = ::poll(&entry, 1, remaining_ms(deadline));
        if (ready > 0) return true;
        if (ready == 0) return false;
        if (errno != EINTR) return false;
    }
}

Status unreachable(const std::string& server, const std::string& why) {
    return Status::error(ErrorCode::unavailable, "cannot reach the GPU server " + server + ": " + why);
}

Result<UniqueFd> connect_address(const sockaddr* address, socklen_t size, const std::string& server,
                                 Clock::time_point deadline) {
    UniqueFd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return unreachable(server, std::strerror(errno));
    int result;
    do result = ::connect(fd.get(), address, size);
    while (result != 0 && errno == EINTR);
    if (result == 0) return fd;
    if (errno != EINPROGRESS && errno != EAGAIN) return unreachable(server, std::strerror(errno));
    if (!wait_ready(fd.get(), POLLOUT, deadline)) return unreachable(server, "no answer in time");
    int failure = 0;
    socklen_t length = sizeof failure;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) return unreachable(server, std::strerror(failure));
    return fd;
}

Result<UniqueFd> connect_unix(const std::string& name, Clock::time_point deadline) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.size() + 1 > sizeof address.sun_path) return unreachable("@" + name, "socket name too long");
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // abstract: the first byte stays 0
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return connect_address(reinterpret_cast<sockaddr*>(&address), size, "@" + name, deadline);
}

Result<UniqueFd> connect_tcp(const std::string& server, Clock::time_point deadline) {
    const auto colon = server.rfind(':');
    if (colon == std::string::npos) return unreachable(server, "the address is not host:port");
    std::string host = server.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int failure = ::getaddrinfo(host.c_str(), server.c_str() + colon + 1, &hints, &found); failure != 0)
        return unreachable(server, ::gai_strerror(failure));
    Status failure = unreachable(server, "no address");
    UniqueFd connected;
    for (addrinfo* one = found; one != nullptr && !connected; one = one->ai_next) {
        auto attempt = connect_address(one->ai_addr, one->ai_addrlen, server, deadline);
        if (attempt)
            connected = std::move(*attempt);
        else
            failure = attempt.take_status();
    }
    ::freeaddrinfo(found);
    if (!connected) return failure;
    return connected;
}

bool send_all(int fd, const void* data, std::size_t size, Clock::time_point deadline) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t sent = ::send(fd, at, size, MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            size -= static_cast<std::size_t>(sent);
        } else if (sent < 0 && errno == EINTR) {
            continue;
        } else if (sent == 0 || errno != EAGAIN || !wait_ready(fd, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

bool receive_all(int fd, void* data, std::size_t size, Clock::time_point deadline) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t got = ::recv(fd, at, size, 0);
        if (got > 0) {
            at += got;
            size -= static_cast<std::size_t>(got);
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got == 0 || errno != EAGAIN || !wait_ready(fd, POLLIN, deadline)) {
            return false;
        }
    }
    return true;
}

// Shows the secret of the lease; an error says why the server refused.
Status introduce(int fd, const Settings& settings, const std::string& server, Clock::time_point deadline) {
    const wire::PathCode path = settings.shared_memory ? wire::PathCode::shm : wire::PathCode::tcp;
    const wire::Preamble preamble =
        wire::make_preamble(settings.secret, static_cast<std::uint32_t>(::getpid()), path, 0);
    wire::PreambleReply reply;
    if (!send_all(fd, &preamble, sizeof preamble, deadline) || !receive_all(fd, &reply, sizeof reply, deadline))
        return unreachable(server, "it closed the connection or gave no answer in time");
    const Status accepted = wire::check_preamble_reply(reply);
    if (accepted) return Status::ok();
    return Status::error(accepted.code(), "the GPU server " + server + " refused the session: " + accepted.text());
}

}  // namespace

Result<std::unique_ptr<transport::Channel>> connect_to_server(const Settings& settings) {
    const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(settings.timeout_s * 1000));
    const auto deadline = Clock::now() + timeout;
    const std::string server = settings.shared_memory ? "@" + settings.server_socket : settings.server_address;
    auto socket =
        settings.shared_memory ? connect_unix(settings.server_socket, deadline) : connect_tcp(server, deadline);
    if (!socket) return socket.take_status();
    if (Status introduced = introduce(socket->get(), settings, server, deadline); !introduced) return introduced;
    transport::ChannelOptions options;
    options.liveness_timeout = timeout;
    return settings.shared_memory ? transport::open_shm_client(std::move(*socket), options)
                                  : transport::open_tcp(std::move(*socket), options);
}

}  // namespace weft::shim
