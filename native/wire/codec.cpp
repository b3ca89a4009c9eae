#include "wire/codec.h"

#include <string>

namespace weft::wire {
namespace {

Status broken(const FrameInfo& info, std::string_view what) {
    return Status::error(ErrorCode::protocol, "frame " + std::string(info.name) + ": " + std::string(what));
}

// True if the flag is where it must not be, or missing where it must be.
bool contradicts(Has has, bool flag) { return flag ? has == Has::never : has == Has::always; }

}  // namespace

Status check_frame(std::span<const std::byte> frame, const FrameInfo& info) {
    if (frame.size() < sizeof(FrameHeader)) return broken(info, "shorter than a header");
    const FrameHeader header = header_of(frame);
    if (header.size_bytes != frame.size()) return broken(info, "size in the header differs from the size received");
    if (header.size_bytes % kFrameAlignment != 0 || header.size_bytes > kMaxFrameBytes)
        return broken(info, "size is not allowed");
    const std::size_t fixed = sizeof(FrameHeader) + info.fixed_bytes;
    if (frame.size() < fixed) return broken(info, "fields are cut off");
    if (!info.has_tail && frame.size() != fixed) return broken(info, "more bytes than fields");
    if ((header.flags & ~(kFlagPayload | kFlagWaiting)) != 0) return broken(info, "unknown flags");
    const bool has_payload = (header.flags & kFlagPayload) != 0;
    if (contradicts(info.payload, has_payload))
        return broken(info, has_payload ? "has a payload" : "lacks its payload");
    if (has_payload ? header.payload_bytes > kMaxPayloadBytes : header.payload_bytes != 0)
        return broken(info, "payload size is not allowed");
    const bool is_waiting = (header.flags & kFlagWaiting) != 0;
    if (contradicts(info.waiting, is_waiting)) return broken(info, is_waiting ? "must not wait" : "must wait");
    if (is_waiting && header.request == 0) return broken(info, "waits without a number");
    return Status::ok();
}

std::string_view text_of(std::span<const std::byte> tail) {
    const std::string_view all(reinterpret_cast<const char*>(tail.data()), tail.size());
    return all.substr(0, all.find('\0'));
}

}  // namespace weft::wire
