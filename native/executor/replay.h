// Runs a recorded call stream against a driver: `weft replay`. Design note: docs/design/executor.md, "Replay".
#pragma once

#include <string>

#include "base/status.h"
#include "executor/session.h"

namespace weft::executor {

// The report as one JSON object. Error: the recording cannot be read.
Result<std::string> replay(const std::string& path, const driver::DriverTable& driver, SessionOptions options);

}  // namespace weft::executor
