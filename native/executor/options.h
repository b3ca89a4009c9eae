// The command line of weft-executor. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "executor/session.h"
#include "transport/channel.h"

namespace weft::executor {

struct Options {
    enum class Mode { serve, probe, replay };
    Mode mode = Mode::serve;
    std::string driver;
    std::string replay_file;
    int fd = -1;
    int status_fd = -1;
    int usage_fd = -1;  // page of the lease (LeaseUsage); -1: none
    std::size_t usage_slot = 0;
    transport::PathKind path = transport::PathKind::tcp;
    SessionOptions session;
};

// invalid_argument: says which argument is wrong.
Result<Options> parse_options(std::span<const std::string> arguments);
extern const char kUsage[];

}  // namespace weft::executor
