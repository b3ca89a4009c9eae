// A client for tests: writes frames into a session on the same thread and keeps what comes back.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sha256.h"
#include "executor/memory_channel.h"
#include "executor/session.h"

namespace weft::executor::testing {

// A frame that came back.
struct Heard {
    wire::FrameHeader header;
    std::vector<std::byte> frame, payload;
    template <typename Frame>
    Frame as() const {
        Frame fields;
        std::memcpy(&fields, frame.data() + sizeof(wire::FrameHeader), sizeof fields);
        return fields;
    }
    template <typename Frame>
    std::span<const std::byte> tail() const {
        return std::span(frame).subspan(sizeof(wire::FrameHeader) + sizeof(Frame));
    }
};

class TestClient {
  public:
    static constexpr std::uint64_t kWindow = 0x510000000000;
    static constexpr std::uint64_t kStride = 1ull << 30;

    explicit TestClient(const driver::DriverTable& driver, SessionOptions options = {},
                        transport::PathKind kind = transport::PathKind::tcp)
        : channel([this](auto frame, auto payload) { hear(frame, payload); }, kind),
          driver_(driver),
          session(channel, driver_, std::move(options)) {
        opened = session.open().is_ok();
    }

    template <typename Frame>
    void send(std::uint32_t context, const Frame& fields, std::span<const std::byte> tail = {},
              std::span<const std::byte> payload = {}, std::uint32_t request = 0) {
        std::vector<std::byte> bytes(wire::encoded_size<Frame>(tail.size()));
        const std::uint16_t flags =
            (request != 0 ? wire::kFlagWaiting : 0) | (payload.empty() ? 0 : wire::kFlagPayload);
        *wire::begin_frame<Frame>(bytes.data(), context, request, flags, tail.size()) = fields;
        if (!tail.empty()) std::memcpy(wire::tail_of<Frame>(bytes.data()), tail.data(), tail.size());
        reinterpret_cast<wire::FrameHeader*>(bytes.data())->payload_bytes = static_cast<std::uint32_t>(payload.size());
        channel.push(bytes, payload);
    }
    // Returns the request number.
    template <typename Frame>
    std::uint32_t ask(std::uint32_t context, const Frame& fields, std::span<const std::byte> tail = {}) {
        send(context, fields, tail, {}, ++requests);
        return requests;
    }
    // Asks and lets the session work until the answer is there.
    template <typename Frame>
    Heard call(std::uint32_t context, const Frame& fields, std::span<const std::byte> tail = {}) {
        const std::uint32_t request = ask(context, fields, tail);
        run_until([&] { return find_reply(request) != nullptr; });
        const Heard* reply = find_reply(request);
        return reply != nullptr ? *reply : Heard{};
    }
    template <typename Frame>
    int status_of(std::uint32_t context, const Frame& fields, std::span<const std::byte> tail = {}) {
        const Heard reply = call(context, fields, tail);
        return reply.frame.empty() ? -1 : reply.as<wire::Reply>().status;
    }

    // Bounded by time: a session that never gets there fails the test.
    template <typename Condition>
    bool run_until(Condition&& condition) {
        const auto end = Clock::now() + std::chrono::seconds(10);
        while (!condition()) {
            if (session.is_over() || Clock::now() > end) {
                ADD_FAILURE() << "the session did not get there: " << session.end().text;
                return false;
            }
            if (!session.turn()) session.wait();
        }
        return true;
    }
    // Turns until all frames are taken and nothing happens any more (jobs of the helper thread included).
    void settle() {
        run_until([&] { return channel.waiting() == 0 && !session.has_jobs(); });
        for (int quiet = 0; quiet < 3 && !session.is_over();) quiet = session.turn() ? 0 : quiet + 1;
    }
    const Heard* find_reply(std::uint32_t request) const {
        for (const Heard& heard : all) {
            if (heard.header.opcode == wire::Reply::kOpcode && heard.header.request == request) return &heard;
        }
        return nullptr;
    }
    std::vector<Heard> of(std::uint16_t opcode) const {
        std::vector<Heard> found;
        for (const Heard& heard : all) {
            if (heard.header.opcode == opcode) found.push_back(heard);
        }
        return found;
    }
    // Position of the first frame that satisfies the predicate; -1: none.
    template <typename Predicate>
    int position_of(Predicate&& predicate) const {
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (predicate(all[i])) return static_cast<int>(i);
        }
        return -1;
    }

    int hello(std::uint64_t base = kWindow) {
        wire::Hello fields{};
        fields.protocol = wire::kProtocolVersion;
        fields.window_base = base;
        fields.window_stride_bytes = kStride;
        return status_of(0, fields);
    }
    void make_context(std::uint32_t number = 1) { send(number, wire::CtxCreate{}); }
    int map(std::uint64_t address, std::uint64_t size) {
        wire::MemMap fields{};
        fields.address = address;
        fields.size_bytes = size;
        return status_of(0, fields);
    }
    void launch(std::uint32_t function, std::uint32_t stream = 0, std::span<const std::byte> parameters = {},
                std::uint32_t module = 7) {
        wire::Launch fields{};
        fields.module = module;
        fields.function = function;
        fields.grid_x = fields.grid_y = fields.grid_z = fields.block_x = fields.block_y = fields.block_z = 1;
        fields.stream = stream;
        fields.parameter_bytes = static_cast<std::uint32_t>(parameters.size());
        send(1, fields, parameters);
    }
    wire::ModuleLoad module_of(std::string_view image, std::uint32_t number = 7) const {
        wire::ModuleLoad fields{};
        fields.module = number;
        fields.kind = 1;
        fields.size_bytes = image.size();
        fields.hash = sha256(std::as_bytes(std::span(image)));
        return fields;
    }
    void send_image(std::string_view image) {
        wire::Image fields{};
        fields.hash = sha256(std::as_bytes(std::span(image)));
        fields.size_bytes = static_cast<std::uint32_t>(image.size());
        send(0, fields, std::as_bytes(std::span(image)));
    }
    wire::ModuleReply load(std::string_view image, std::uint32_t number = 7) {
        const std::vector<std::byte> options = wire::encode(wire::JitOptions{});
        Heard reply = call(1, module_of(image, number), options);
        auto decoded = wire::decode_module_reply(reply.tail<wire::Reply>());
        if (decoded && decoded->need_image) {
            send_image(image);
            reply = call(1, module_of(image, number), options);
            decoded = wire::decode_module_reply(reply.tail<wire::Reply>());
        }
        return decoded ? *decoded : wire::ModuleReply{};
    }
    // Hello, one context, 8 MiB of memory, the module, and as many streams.
    void start(int streams = 0) {
        ASSERT_EQ(hello(), CUDA_SUCCESS);
        make_context();
        ASSERT_EQ(map(kWindow, 8u << 20), CUDA_SUCCESS);
        load("image");
        for (int i = 1; i <= streams; ++i) {
            wire::StreamCreate fields{};
            fields.stream = static_cast<std::uint32_t>(i);
            send(1, fields);
        }
        settle();
    }

    MemoryChannel channel;
    driver::DriverTable driver_;
    Session session;
    bool opened = false;
    std::vector<Heard> all;
    std::uint32_t requests = 0;

  private:
    void hear(std::span<const std::byte> frame, std::span<const std::byte> payload) {
        all.push_back({wire::header_of(frame), {frame.begin(), frame.end()}, {payload.begin(), payload.end()}});
    }
};

}  // namespace weft::executor::testing
