// Streams that wait for the client in a host function, and graphs.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "executor/session.h"
#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::AddParameters;
using testing::FakeDriver;
using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionGraphTest : public testing::DriverTest {};

TEST_F(SessionGraphTest, AHostFunctionHoldsItsStreamUntilTheClientHasAnswered) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    wire::StreamCreate create{};
    create.stream = 3;
    create.flags = CU_STREAM_NON_BLOCKING;
    client.send(1, create);
    wire::HostFunction function{};
    function.call = 40;
    function.stream = 3;
    client.send(1, function);
    wire::StreamSync sync{};
    sync.stream = 3;
    const std::uint32_t waiting = client.ask(1, sync);
    client.run_until([&] { return !client.of(wire::HostCall::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::HostCall::kOpcode)[0].as<wire::HostCall>().call, 40u);
    sync.stream = 0;
    EXPECT_EQ(client.status_of(1, sync), CUDA_SUCCESS) << "another stream goes on";
    EXPECT_EQ(client.find_reply(waiting), nullptr);
    wire::HostDone done{};
    done.call = 40;
    client.send(1, done);
    client.run_until([&] { return client.find_reply(waiting) != nullptr; });
}

TEST_F(SessionGraphTest, AnAnswerThatWasNotAskedForEndsTheSession) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    fake().automatic = false;
    ASSERT_EQ(client.map(kWindow, 2u << 20), CUDA_SUCCESS);
    (void)client.load(".visible .global .align 4 .b8 counter[5000];");
    const AddParameters parameters{kWindow, kWindow, kWindow, 1};
    client.launch(0, 0, std::as_bytes(std::span(&parameters, 1)).first(28));
    wire::HostFunction function{};
    function.call = 40;
    client.send(1, function);
    wire::HostDone done{};
    done.call = 40;
    client.send(1, done);
    for (int i = 0; i < 100 && !client.session.is_over(); ++i) client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::protocol);
    fake().automatic = true;
    fake().run_all();
}

class GraphTest : public SessionGraphTest {
  protected:
    template <typename Frame>
    static std::vector<std::byte> inner(const Frame& fields, std::span<const std::byte> tail = {}) {
        std::vector<std::byte> bytes(wire::encoded_size<Frame>(tail.size()));
        *wire::begin_frame<Frame>(bytes.data(), 1, 0, 0, tail.size()) = fields;
        if (!tail.empty()) std::memcpy(wire::tail_of<Frame>(bytes.data()), tail.data(), tail.size());
        return bytes;
    }
    static void node(TestClient& client, std::uint32_t index, const std::vector<std::byte>& frame) {
        wire::GraphNode fields{};
        fields.graph = 50;
        fields.node = index;
        fields.size_bytes = static_cast<std::uint32_t>(frame.size());
        client.send(1, fields, frame);
    }
    static wire::GraphCreate create(std::uint32_t nodes) {
        wire::GraphCreate fields{};
        fields.graph = 50;
        fields.node_count = nodes;
        return fields;
    }
    static std::vector<std::byte> fill(std::uint64_t to, std::uint8_t value) {
        wire::MemsetD2D8Async fields{};
        fields.dstDevice = to;
        fields.uc = value;
        fields.Width = 16;
        fields.Height = 1;
        return inner(fields);
    }
    static void edge(TestClient& client, std::uint32_t from, std::uint32_t to) {
        wire::GraphEdges fields{};
        fields.graph = 50;
        fields.count = 1;
        const std::uint32_t pair[] = {from, to};
        client.send(1, fields, std::as_bytes(std::span(pair)));
    }
    static bool ends(TestClient& client) {
        const auto end = Clock::now() + std::chrono::seconds(10);
        while (!client.session.is_over() && Clock::now() < end)
            if (!client.session.turn()) client.session.wait();
        return client.session.end().kind == EndReason::Kind::protocol;
    }
};

TEST_F(GraphTest, ALaunchWaitsForTheClientInItsMiddle) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    client.send(1, create(2));
    wire::HostFunction function{};
    function.call = 41;
    node(client, 0, inner(function));
    function.call = 42;
    node(client, 1, inner(function));
    edge(client, 0, 1);
    wire::GraphInstantiate ready{};
    ready.graph = 50;
    ASSERT_EQ(client.status_of(1, ready), CUDA_SUCCESS);
    wire::GraphLaunch launch{};
    launch.graph = 50;
    for (int round = 0; round < 2; ++round) {
        client.send(1, launch);
        wire::CtxSync sync{};
        const std::uint32_t waiting = client.ask(1, sync);
        for (const std::uint32_t call : {41u, 42u}) {
            const std::size_t before = static_cast<std::size_t>(round) * 2 + call - 41;
            client.run_until([&] { return client.of(wire::HostCall::kOpcode).size() > before; });
            EXPECT_EQ(client.of(wire::HostCall::kOpcode)[before].as<wire::HostCall>().call, call);
            EXPECT_EQ(client.find_reply(waiting), nullptr);
            wire::HostDone done{};
            done.call = call;
            client.send(1, done);
        }
        client.run_until([&] { return client.find_reply(waiting) != nullptr; });
    }
}

TEST_F(GraphTest, GraphsThatCannotBeAreRefused) {
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(0xffffffff));
        EXPECT_TRUE(ends(client));
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        edge(client, 1, 0);
        EXPECT_TRUE(ends(client)) << "a circle could be made of such edges";
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        node(client, 0, inner(wire::CtxDestroy{}));
        EXPECT_TRUE(ends(client)) << "not every frame can be a node";
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        node(client, 2, fill(kWindow, 1));
        EXPECT_TRUE(ends(client));
    }
}

TEST_F(GraphTest, AGraphEndsWithItsContext) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    client.send(1, create(1));
    wire::GraphInstantiate ready{};
    ready.graph = 50;
    ASSERT_EQ(client.status_of(1, ready), CUDA_SUCCESS);
    client.send(1, wire::CtxDestroy{});
    client.settle();
    wire::CtxCreate again{};
    client.send(2, again);
    wire::GraphLaunch launch{};
    launch.graph = 50;
    client.send(2, launch);
    client.run_until([&] { return !client.of(wire::Error::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::Error::kOpcode).back().as<wire::Error>().status, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_FALSE(client.session.is_over());
}

}  // namespace
}  // namespace weft::executor
