// Makes channels from connected sockets. It must not connect, listen or authenticate: that is done when a socket gets
// here. A path "rdma" will be one more pair of functions here and one more PathKind; its control socket is the tcp one.
// Design note: docs/design/transport.md.
#pragma once

#include <memory>

#include "base/fd.h"
#include "base/status.h"
#include "transport/channel.h"
#include "transport/options.h"

namespace weft::transport {

// Either end of a connected TCP socket.
Result<std::unique_ptr<Channel>> open_tcp(UniqueFd connected_socket, ChannelOptions options);

// The client's end of shm: makes the shared memory, seals it and passes it over the connected Unix stream socket.
Result<std::unique_ptr<Channel>> open_shm_client(UniqueFd unix_socket, ChannelOptions options);

// The executor's end of shm: waits (at most the liveness time-out) for the client's shared memory, checks its seals and
// size. The client decides ring and slot sizes within fixed bounds; those of `options` are not used.
Result<std::unique_ptr<Channel>> accept_shm(UniqueFd unix_socket, ChannelOptions options);

}  // namespace weft::transport
