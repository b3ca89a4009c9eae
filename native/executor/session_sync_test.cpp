// A synchronisation that brings along what the client reads next.
#include <gtest/gtest.h>

#include "executor/session.h"
#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionSyncTest : public testing::DriverTest {};

// Four bytes at the start of the window.
void put(TestClient& client, std::uint32_t value) {
    wire::CopyH2dInline copy{};
    copy.destination = kWindow;
    copy.size_bytes = sizeof value;
    client.send(1, copy, std::as_bytes(std::span(&value, 1)));
}

std::span<const std::byte> bytes_of(const Heard& reply) {
    return reply.tail<wire::Reply>().first(reply.as<wire::Reply>().tail_bytes);
}

wire::CtxSync sync_with(std::uint64_t source, std::uint32_t size_bytes) {
    wire::CtxSync sync{};
    sync.read_source = source;
    sync.read_bytes = size_bytes;
    return sync;
}

TEST_F(SessionSyncTest, BringsTheBytesAsTheyAreThen) {
    for (const bool direct : {false, true}) {
        fake().reset(direct);
        TestClient client(fake().table());
        client.start();
        fake().automatic = false;
        put(client, 77);
        client.launch(1);
        const std::uint32_t request = client.ask(1, sync_with(kWindow, 4));
        client.settle();
        EXPECT_EQ(client.find_reply(request), nullptr) << "the launch is still running";
        fake().automatic = true;
        fake().run_all();
        client.run_until([&] { return client.find_reply(request) != nullptr; });
        const Heard reply = *client.find_reply(request);
        EXPECT_EQ(reply.as<wire::Reply>().status, CUDA_SUCCESS);
        ASSERT_EQ(bytes_of(reply).size(), 4u);
        EXPECT_EQ(bytes_of(reply)[0], std::byte{77});
        EXPECT_EQ(client.of(wire::Data::kOpcode).size(), 0u);
    }
    EXPECT_EQ(fake().live_events(), 0u);
}

TEST_F(SessionSyncTest, WithoutBytesWhereNothingCanBeRead) {
    for (const bool direct : {false, true}) {
        fake().reset(direct);
        TestClient client(fake().table());
        client.start();
        const Heard reply = client.call(1, sync_with(0x10, 4));
        EXPECT_EQ(reply.as<wire::Reply>().status, CUDA_SUCCESS);
        EXPECT_TRUE(bytes_of(reply).empty());
        EXPECT_EQ(client.of(wire::Error::kOpcode).size(), 0u);
    }
}

TEST_F(SessionSyncTest, EndOfTheContextIsNotHeldUpByAReader) {
    TestClient client(fake().table());
    client.start();
    EXPECT_EQ(bytes_of(client.call(1, sync_with(kWindow, 8192))).size(), 8192u);
    client.send(1, wire::CtxDestroy{});
    client.settle();
    EXPECT_EQ(fake().live_contexts(), 0);
    EXPECT_EQ(fake().live_streams(), 0u);
}

TEST_F(SessionSyncTest, MoreThanAFrameHoldsIsMalformed) {
    TestClient client(fake().table());
    client.start();
    client.ask(1, sync_with(kWindow, wire::kMaxInlineBytes + 1));
    for (int i = 0; i < 100 && !client.session.is_over(); ++i) client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::protocol);
}

}  // namespace
}  // namespace weft::executor
