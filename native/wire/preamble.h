// The opening of a connection: one Preamble from the client, one PreambleReply from the server, both of fixed size.
// Layouts are generated (gen/wire_records.h, and weft.gen.preamble for the server). Grammar: docs/design/wire.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gen/wire_frames.h"
#include "gen/wire_records.h"

namespace weft::wire {

enum class PathCode : std::uint32_t { tcp = 0, shm = 1 };
enum class PreambleCode : std::uint32_t { accepted = 0, version = 1, secret = 2, unavailable = 3, malformed = 4 };

using Secret = std::array<std::uint8_t, 32>;

struct ProtocolRange {
    std::uint32_t oldest = kProtocolOldest;
    std::uint32_t newest = kProtocolVersion;
};

// The newest protocol that both ends speak, if there is one.
std::optional<std::uint32_t> common_protocol(ProtocolRange ours, ProtocolRange theirs);

Preamble make_preamble(const Secret& secret, std::uint32_t process_id, PathCode path, std::uint64_t features);
// What the server must check of a preamble besides the secret. The error's code tells which PreambleCode to answer.
Status check_preamble(const Preamble& preamble);

PreambleReply make_preamble_reply(PreambleCode code, std::uint64_t features, std::string_view text);
// What the client makes of the reply: success, or an error with the server's line of text.
Status check_preamble_reply(const PreambleReply& reply);

}  // namespace weft::wire
