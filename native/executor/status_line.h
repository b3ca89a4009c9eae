// What the executor tells its server: one JSON object per line on the status descriptor.
#pragma once

#include <string>

#include "executor/session.h"

namespace weft::executor {

std::string started_line(const Session& session);
std::string ended_line(std::string_view reason, const Session* session, const transport::Counters& traffic);
// Writes the line and its end; a closed reader is no error.
void write_status(int fd, const std::string& line);

}  // namespace weft::executor
