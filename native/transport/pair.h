// Two connected channels in one process, for tests and benchmarks; or the two connected sockets to make them in two
// processes. It must not be used by the product. docs/design/transport.md.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "transport/channel.h"
#include "transport/options.h"

namespace weft::transport {

// Connected sockets of the path's kind: a Unix stream pair for shm, TCP over loopback for tcp. First the client's.
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair(PathKind kind);

// The client's or the executor's end on such a socket.
Result<std::unique_ptr<Channel>> open_client(PathKind kind, UniqueFd socket, const ChannelOptions& options);
Result<std::unique_ptr<Channel>> open_executor(PathKind kind, UniqueFd socket, const ChannelOptions& options);

struct ChannelPair {
    std::unique_ptr<Channel> client, executor;
};
Result<ChannelPair> make_channel_pair(PathKind kind, const ChannelOptions& options = {});

}  // namespace weft::transport
