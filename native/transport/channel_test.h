// What the tests of channels share: frames whose bytes follow from a number, and loops with a bounded wait.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "transport/channel.h"
#include "transport/pair.h"

namespace weft::transport::testing {

inline constexpr auto kPatience = std::chrono::seconds(15);
inline Clock::time_point patience() { return Clock::now() + kPatience; }

inline void fill(std::span<std::byte> bytes, std::uint64_t seed) {
    if (bytes.empty()) return;
    Random random(seed);
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(bytes.data() + at, &word, 8);
    }
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

inline bool holds(std::span<const std::byte> bytes, std::uint64_t seed) {
    std::vector<std::byte> expected(bytes.size());
    fill(expected, seed);
    return std::equal(bytes.begin(), bytes.end(), expected.begin());
}

// A frame of size_bytes with number `request` whose arguments follow from it.
inline std::vector<std::byte> make_frame(std::uint32_t request, std::size_t size_bytes, std::size_t payload_bytes = 0) {
    std::vector<std::byte> frame(size_bytes);
    fill(std::span(frame).subspan(sizeof(wire::FrameHeader)), request);
    wire::FrameHeader header{};
    header.size_bytes = static_cast<std::uint32_t>(size_bytes);
    header.opcode = 99;
    header.flags = payload_bytes > 0 ? wire::kFlagPayload : 0;
    header.request = request;
    header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    std::memcpy(frame.data(), &header, sizeof header);
    return frame;
}

inline wire::FrameHeader header_of(const Received& received) {
    wire::FrameHeader header;
    std::memcpy(&header, received.frame.data(), sizeof header);
    return header;
}

inline bool try_append(Channel& channel, std::span<const std::byte> frame) {
    std::byte* room = channel.reserve(frame.size());
    if (room == nullptr) return false;
    std::memcpy(room, frame.data(), frame.size());
    channel.commit(frame.size());
    return true;
}

// Until all that was committed has left this process.
inline Status push_all(Channel& channel) {
    const auto deadline = patience();
    for (;;) {
        if (Status status = channel.flush(); !status || !channel.has_unsent()) return status;
        if (Clock::now() > deadline) return Status::error(ErrorCode::internal, "not sent in time");
        if (Status status = channel.wait(true, deadline); !status) return status;
    }
}

// Appends and flushes; waits for room. Only for tests in which the peer reads by itself.
inline Status append(Channel& channel, std::span<const std::byte> frame) {
    const auto deadline = patience();
    while (!try_append(channel, frame)) {
        if (Clock::now() > deadline) return Status::error(ErrorCode::internal, "no room in time");
        if (Status status = channel.flush(); !status) return status;
        if (Status status = channel.wait(true, deadline); !status) return status;
    }
    return channel.flush();
}

// The next frame, waiting for it.
inline Result<Received> receive(Channel& channel) {
    const auto deadline = patience();
    while (Clock::now() < deadline) {
        auto received = channel.poll();
        if (!received || *received) return received;
        if (channel.has_unsent()) {
            if (Status status = channel.flush(); !status) return status;
        }
        if (Status status = channel.wait(channel.has_unsent(), deadline); !status) return status;
    }
    return Status::error(ErrorCode::internal, "nothing came in time");
}

// Waits and polls until the channel reports an error; frames that come before are dropped.
inline Status await_end(Channel& channel) {
    const auto deadline = patience();
    while (Clock::now() < deadline) {
        auto received = channel.poll();
        if (!received) return received.take_status();
        if (received->buffer) channel.release_buffer(received->buffer);
        if (*received) continue;
        if (Status status = channel.wait(false, deadline); !status) return status;
    }
    return Status::ok();
}

inline ChannelPair must_make_pair(PathKind kind, const ChannelOptions& options = {}) {
    auto pair = make_channel_pair(kind, options);
    EXPECT_TRUE(pair) << pair.status().text();
    return pair ? std::move(*pair) : ChannelPair{};
}

inline std::string path_name(const ::testing::TestParamInfo<PathKind>& about) {
    return std::string(to_string(about.param));
}

}  // namespace weft::transport::testing
