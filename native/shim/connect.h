// From the environment to a channel: connects to the server, shows the secret of the lease, opens shm or tcp on the
// socket. Bounded by WEFT_TIMEOUT_S; every failure is one line that names the server and the reason.
#pragma once

#include <memory>

#include "base/status.h"
#include "shim/settings.h"
#include "transport/channel.h"

namespace weft::shim {

Result<std::unique_ptr<transport::Channel>> connect_to_server(const Settings& settings);

}  // namespace weft::shim
