// What a session does with failures, with objects that end, and with frames that should not be.
#include <gtest/gtest.h>

#include "executor/session.h"
#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionErrorTest : public testing::DriverTest {};

TEST_F(SessionErrorTest, FailureOfAnAsynchronousFrameIsPushed) {
    TestClient client(fake().table());
    client.start();
    fake().next_launch = CUDA_ERROR_INVALID_VALUE;
    client.launch(1);
    client.settle();
    const auto errors = client.of(wire::Error::kOpcode);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].header.context, 1u);
    EXPECT_EQ(errors[0].as<wire::Error>().status, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(errors[0].as<wire::Error>().failed_opcode, wire::Launch::kOpcode);
    EXPECT_EQ(wire::text_of(errors[0].tail<wire::Error>()), "LAUNCH failed: CUDA_ERROR_INVALID_VALUE (kernel noop)");
    EXPECT_FALSE(client.session.is_over());
}

TEST_F(SessionErrorTest, StickyErrorIsToldOnce) {
    TestClient client(fake().table());
    client.start();
    fake().next_launch = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 100; ++i) client.launch(1);
    client.settle();
    ASSERT_EQ(client.of(wire::Error::kOpcode).size(), 1u);
    EXPECT_EQ(client.of(wire::Error::kOpcode)[0].as<wire::Error>().sticky, 1);
}

TEST_F(SessionErrorTest, ContextThatCannotBeMadeFailsItsFrames) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    wire::CtxCreate create{};
    create.flags = CU_CTX_SCHED_YIELD;
    client.send(1, create);
    EXPECT_EQ(client.status_of(1, wire::CtxSync{}), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.of(wire::Error::kOpcode).size(), 1u);
}

TEST_F(SessionErrorTest, DestroyedContextTakesItsObjectsAlong) {
    TestClient client(fake().table());
    client.start(2);
    client.launch(1, 1);
    client.send(1, wire::CtxDestroy{});
    client.make_context(2);
    EXPECT_EQ(client.status_of(2, wire::CtxSync{}), CUDA_SUCCESS);
    EXPECT_EQ(client.status_of(1, wire::CtxSync{}), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(fake().live_contexts(), 1);
}

// Threads with contexts of their own got CUDA_ERROR_INVALID_CONTEXT from a copy while another one destroyed its
// context: the loop was left without a current context and asked for events that way.
TEST_F(SessionErrorTest, EndOfOneContextDoesNotDisturbTheWaitersOfAnother) {
    TestClient client(fake().table());
    client.start();
    client.make_context(2);
    client.settle();
    fake().automatic = false;
    client.launch(1);
    const std::uint32_t sync = client.ask(1, wire::CtxSync{});
    client.send(2, wire::CtxDestroy{});
    client.settle();
    EXPECT_EQ(fake().live_contexts(), 1);
    EXPECT_EQ(client.find_reply(sync), nullptr);
    fake().run_all();
    client.run_until([&] { return client.find_reply(sync) != nullptr; });
    EXPECT_EQ(client.find_reply(sync)->as<wire::Reply>().status, CUDA_SUCCESS);
}

TEST_F(SessionErrorTest, ModulesAreUnloadedWithoutLeaks) {
    TestClient client(fake().table());
    client.start();
    for (std::uint32_t i = 100; i < 200; ++i) {
        client.load("image", i);
        wire::ModuleUnload unload{};
        unload.module = i;
        client.send(1, unload);
    }
    client.status_of(1, wire::CtxSync{});
    client.run_until([&] { return fake().live_modules() == 1; });
}

TEST_F(SessionErrorTest, GeneratedCallRunsInItsStream) {
    TestClient client(fake().table());
    client.start(1);
    wire::MemsetD8Async memset{};
    memset.dstDevice = kWindow;
    memset.uc = 9;
    memset.N = 64;
    memset.stream = 1;
    client.send(1, memset);
    client.settle();
    EXPECT_EQ(fake().log, (std::vector<std::string>{"memset@1"}));
    EXPECT_EQ(reinterpret_cast<char*>(kWindow)[63], 9);
    wire::CtxGetLimit limit{};
    EXPECT_EQ(client.status_of(1, limit), CUDA_SUCCESS);
}

TEST_F(SessionErrorTest, MalformedFramesEndTheSessionWithAReason) {
    const auto reason_of = [&](auto&& misbehave) {
        fake().reset();
        TestClient client(fake().table());
        client.start(1);
        misbehave(client);
        for (int i = 0; i < 100 && !client.session.is_over(); ++i) client.session.turn();
        EXPECT_EQ(client.session.end().kind, EndReason::Kind::protocol) << client.session.end().text;
        EXPECT_EQ(client.of(wire::Bye::kOpcode).size(), 1u);
        return client.session.end().text;
    };
    EXPECT_EQ(reason_of([](TestClient& c) { c.send(1, wire::Reply{}); }),
              "malformed frame (REPLY): a frame of the other direction");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  std::vector<std::byte> frame(24);
                  const wire::FrameHeader header{24, 9999, 0, 0, 0, 0, 0};
                  std::memcpy(frame.data(), &header, sizeof header);
                  c.channel.push(frame);
              }),
              "malformed frame (opcode 9999): unknown opcode");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  wire::MemMap map{};
                  map.address = kWindow + 1;
                  map.size_bytes = 2u << 20;
                  c.ask(0, map);
              }),
              "malformed frame (MEM_MAP): extent is not a multiple of the granularity");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  wire::CopyH2dPull pull{};
                  pull.destination = kWindow;
                  pull.size_bytes = 16;
                  pull.pull = 1;
                  c.send(1, pull);
                  c.run_until([&] { return !c.of(wire::Pull::kOpcode).empty(); });
                  wire::PullData data{};
                  data.pull = 1;
                  data.size_bytes = 32;
                  c.send(0, data, std::vector<std::byte>(32));
              }),
              "malformed frame (PULL_DATA): not the next piece of the pull");
}

TEST_F(SessionErrorTest, GoodbyeEndsTheSession) {
    TestClient client(fake().table());
    client.start();
    client.send(0, wire::Goodbye{});
    client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::goodbye);
}

TEST_F(SessionErrorTest, GoneClientEndsTheSession) {
    TestClient client(fake().table());
    client.start();
    client.channel.hang_up();
    client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::client_gone);
}

}  // namespace
}  // namespace weft::executor
