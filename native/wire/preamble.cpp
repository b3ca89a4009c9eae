#include "wire/preamble.h"

#include <algorithm>
#include <cstring>

namespace weft::wire {
namespace {

std::string range_text(ProtocolRange range) {
    return std::to_string(range.oldest) + " to " + std::to_string(range.newest);
}

ErrorCode error_code(std::uint32_t code) {
    switch (static_cast<PreambleCode>(code)) {
        case PreambleCode::version: return ErrorCode::version;
        case PreambleCode::secret: return ErrorCode::permission_denied;
        case PreambleCode::unavailable: return ErrorCode::unavailable;
        default: return ErrorCode::protocol;
    }
}

}  // namespace

std::optional<std::uint32_t> common_protocol(ProtocolRange ours, ProtocolRange theirs) {
    const std::uint32_t newest = std::min(ours.newest, theirs.newest);
    if (newest < std::max(ours.oldest, theirs.oldest)) return std::nullopt;
    return newest;
}

Preamble make_preamble(const Secret& secret, std::uint32_t process_id, PathCode path, std::uint64_t features) {
    Preamble preamble;
    preamble.magic = kPreambleMagic;
    preamble.protocol_oldest = kProtocolOldest;
    preamble.protocol_newest = kProtocolVersion;
    preamble.features = features;
    preamble.secret = secret;
    preamble.process_id = process_id;
    preamble.path_kind = static_cast<std::uint32_t>(path);
    return preamble;
}

Status check_preamble(const Preamble& preamble) {
    if (preamble.magic != kPreambleMagic) return Status::error(ErrorCode::protocol, "the peer is no Weft client");
    const ProtocolRange theirs{preamble.protocol_oldest, preamble.protocol_newest};
    if (!common_protocol({}, theirs)) {
        return Status::error(ErrorCode::version,
                             "the client speaks protocols " + range_text(theirs) + ", this server " + range_text({}));
    }
    if (preamble.path_kind > static_cast<std::uint32_t>(PathCode::shm))
        return Status::error(ErrorCode::protocol, "unknown path");
    return Status::ok();
}

PreambleReply make_preamble_reply(PreambleCode code, std::uint64_t features, std::string_view text) {
    PreambleReply reply;
    reply.magic = kPreambleMagic;
    reply.code = static_cast<std::uint32_t>(code);
    reply.protocol_oldest = kProtocolOldest;
    reply.protocol_newest = kProtocolVersion;
    reply.features = features;
    std::memcpy(reply.text.data(), text.data(), std::min(text.size(), reply.text.size() - 1));
    return reply;
}

Status check_preamble_reply(const PreambleReply& reply) {
    if (reply.magic != kPreambleMagic) return Status::error(ErrorCode::protocol, "the peer is no Weft server");
    const auto end = std::find(reply.text.begin(), reply.text.end(), 0);
    const std::string text(reply.text.begin(), end);
    const ProtocolRange theirs{reply.protocol_oldest, reply.protocol_newest};
    if (reply.code == static_cast<std::uint32_t>(PreambleCode::version)) {
        return Status::error(ErrorCode::version,
                             "the server speaks protocols " + range_text(theirs) + ", this client " + range_text({}));
    }
    if (reply.code != 0)
        return Status::error(error_code(reply.code), text.empty() ? "the server refused without a reason" : text);
    if (!common_protocol({}, theirs))
        return Status::error(ErrorCode::version, "the server accepted without a common protocol");
    return Status::ok();
}

}  // namespace weft::wire
