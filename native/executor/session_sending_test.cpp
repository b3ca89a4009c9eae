// What a session sends while the way to the client is slow, full, or takes things in parts.
#include <gtest/gtest.h>

#include "executor/session.h"
#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionSendingTest : public testing::DriverTest {};

TEST_F(SessionSendingTest, LargeCopiesMoveInPiecesBothWays) {
    for (const bool direct : {false, true}) {
        for (const auto kind : {transport::PathKind::tcp, transport::PathKind::shm}) {
            fake().reset(direct);
            TestClient client(fake().table(), {}, kind);
            client.start();
            std::vector<std::uint32_t> values((1u << 20) / 4);
            for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = i * 2654435761u;
            for (int piece = 0; piece < 4; ++piece) {
                wire::CopyH2d copy{};
                copy.destination = kWindow + static_cast<std::uint64_t>(piece) * (256u << 10);
                client.send(1, copy, {},
                            std::as_bytes(std::span(values))
                                .subspan(static_cast<std::size_t>(piece) * (256u << 10), 256u << 10));
            }
            wire::CopyD2h back{};
            back.source = kWindow;
            back.size_bytes = 1u << 20;
            back.transfer = 5;
            ASSERT_EQ(client.status_of(1, back), CUDA_SUCCESS);
            std::vector<std::byte> got(1u << 20);
            for (const Heard& heard : client.of(wire::Data::kOpcode)) {
                std::memcpy(got.data() + heard.as<wire::Data>().offset, heard.payload.data(), heard.payload.size());
            }
            EXPECT_EQ(std::memcmp(got.data(), values.data(), got.size()), 0);
            EXPECT_EQ(fake().log.empty(), direct);
            EXPECT_EQ(client.channel.lent_buffers(), 0u);
        }
    }
}

TEST_F(SessionSendingTest, ClientThatDoesNotReadIsNotServedWithoutLimit) {
    TestClient client(fake().table());
    client.start();
    client.channel.allow(0);
    for (int i = 0; i < 100000; ++i) client.ask(1, wire::CtxSync{});
    for (int i = 0; i < 2000; ++i) client.session.turn();
    EXPECT_GT(client.channel.waiting(), 50000u) << "frames stay where they are while answers cannot leave";
    client.channel.allow(1u << 30);
    client.settle();
    EXPECT_EQ(client.of(wire::Reply::kOpcode).size(), static_cast<std::size_t>(client.requests));
}

// A program hung in the middle of its copies over tcp: the reply lay committed behind a full socket, and the loop slept
// until the client would say something.
TEST_F(SessionSendingTest, CommittedFramesThatDidNotFitAreWaitedFor) {
    TestClient client(fake().table());
    client.start();
    client.channel.allow_bytes(8);
    const std::uint32_t request = client.ask(1, wire::CtxSync{});
    while (client.session.turn()) {
    }
    ASSERT_EQ(client.find_reply(request), nullptr);
    client.session.wait();
    EXPECT_TRUE(client.channel.waited_for_room());
    client.channel.allow_bytes(1u << 20);
    client.run_until([&] { return client.find_reply(request) != nullptr; });
    while (client.session.turn()) {
    }
    client.session.wait();
    EXPECT_FALSE(client.channel.waited_for_room()) << "nothing is left to send";
}

// The same hang, second cause: the copy's last bytes left in parts, and the frames that had waited for its end were
// free to go, but the loop did not look at them again.
TEST_F(SessionSendingTest, EndOfACopySentInPartsLetsTheFramesBehindItGo) {
    fake().reset(true);
    TestClient client(fake().table());
    client.start(1);
    client.channel.allow_bytes(100'000);
    wire::CopyD2h copy{};
    copy.source = kWindow;
    copy.size_bytes = 700'000;
    copy.transfer = 5;
    copy.stream = 1;
    client.send(1, copy);
    wire::StreamSync sync{};
    sync.stream = 1;
    const std::uint32_t request = client.ask(1, sync);
    for (int part = 0; part < 8; ++part) {
        while (client.session.turn()) {
        }
        ASSERT_EQ(client.find_reply(request) != nullptr, part == 7) << "part " << part;
        client.channel.allow_bytes(100'000);
    }
    EXPECT_EQ(client.of(wire::Data::kOpcode).size(), 3u);
}

}  // namespace
}  // namespace weft::executor
