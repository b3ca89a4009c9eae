#include "transport/pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/factory.h"

namespace weft::transport {

namespace {

Result<std::pair<UniqueFd, UniqueFd>> make_tcp_pair() {
    UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener || !client) return Status::from_errno("socket", errno);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (::bind(listener.get(), generic, length) != 0) return Status::from_errno("bind", errno);
    if (::listen(listener.get(), 1) != 0) return Status::from_errno("listen", errno);
    if (::getsockname(listener.get(), generic, &length) != 0) return Status::from_errno("getsockname", errno);
    if (::connect(client.get(), generic, length) != 0) return Status::from_errno("connect", errno);
    UniqueFd executor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!executor) return Status::from_errno("accept", errno);
    return std::pair{std::move(client), std::move(executor)};
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair(PathKind kind) {
    if (kind == PathKind::tcp) return make_tcp_pair();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno("socketpair", errno);
    return std::pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<std::unique_ptr<Channel>> open_client(PathKind kind, UniqueFd socket, const ChannelOptions& options) {
    return kind == PathKind::shm ? open_shm_client(std::move(socket), options) : open_tcp(std::move(socket), options);
}

Result<std::unique_ptr<Channel>> open_executor(PathKind kind, UniqueFd socket, const ChannelOptions& options) {
    return kind == PathKind::shm ? accept_shm(std::move(socket), options) : open_tcp(std::move(socket), options);
}

Result<ChannelPair> make_channel_pair(PathKind kind, const ChannelOptions& options) {
    auto sockets = make_socket_pair(kind);
    if (!sockets) return sockets.take_status();
    auto client = open_client(kind, std::move(sockets->first), options);
    if (!client) return client.take_status();
    auto executor = open_executor(kind, std::move(sockets->second), options);
    if (!executor) return executor.take_status();
    return ChannelPair{std::move(*client), std::move(*executor)};
}

}  // namespace weft::transport
