// One suite for both paths: order and integrity, both directions full, bounds, buffers, wake-ups and the end of a peer.
#include "transport/channel.h"

#include <algorithm>
#include <deque>
#include <thread>

#include "transport/channel_test.h"

namespace weft::transport {
namespace {

using namespace testing;

class ChannelTest : public ::testing::TestWithParam<PathKind> {
  protected:
    void SetUp() override { pair_ = must_make_pair(GetParam()); }
    Channel& client() { return *pair_.client; }
    Channel& executor() { return *pair_.executor; }

    ChannelPair pair_;
};

INSTANTIATE_TEST_SUITE_P(Path, ChannelTest, ::testing::Values(PathKind::shm, PathKind::tcp), path_name);

std::size_t random_frame_bytes(Random& random) {
    const std::size_t most = random.below(16) == 0 ? wire::kMaxFrameBytes : 512;
    return sizeof(wire::FrameHeader) + 8 * random.below((most - sizeof(wire::FrameHeader)) / 8 + 1);
}

TEST_P(ChannelTest, keeps_order_and_bytes_of_random_frames) {
    constexpr std::uint32_t kFrames = 20'000;
    std::thread sender([&] {
        Random random(1);
        for (std::uint32_t i = 1; i <= kFrames; ++i) {
            Status status = append(client(), make_frame(i, random_frame_bytes(random)));
            if (!status) FAIL() << status.text();
        }
        EXPECT_TRUE(push_all(client()));
    });
    Random random(1);
    for (std::uint32_t i = 1; i <= kFrames; ++i) {
        auto received = receive(executor());
        ASSERT_TRUE(received) << received.status().text();
        ASSERT_EQ(received->frame.size(), random_frame_bytes(random));
        ASSERT_EQ(header_of(*received).request, i);
        ASSERT_TRUE(holds(received->frame.subspan(sizeof(wire::FrameHeader)), i));
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(received->frame.data()) % 8, 0u);
    }
    sender.join();
}

// Both ends send as much as they can and read only when there is no room: neither may wait for the other forever.
TEST_P(ChannelTest, carries_both_directions_full_at_once) {
    constexpr std::uint32_t kFrames = 3'000;
    auto talk = [](Channel& channel) {
        std::uint32_t sent = 0, got = 0;
        auto unfinished = [&] { return sent < kFrames || got < kFrames || channel.has_unsent(); };
        const auto deadline = patience();
        while (unfinished() && Clock::now() < deadline) {
            while (sent < kFrames && try_append(channel, make_frame(sent + 1, 16'384))) ++sent;
            if (!channel.flush()) break;
            auto received = channel.poll();
            if (!received) break;
            if (*received) {
                if (header_of(*received).request != ++got) break;
            } else if (unfinished() && !channel.wait(sent < kFrames || channel.has_unsent(), deadline)) {
                break;
            }
        }
        return !unfinished();
    };
    bool client_done = false;
    std::thread other([&] { client_done = talk(client()); });
    EXPECT_TRUE(talk(executor()));
    other.join();
    EXPECT_TRUE(client_done);
}

TEST_P(ChannelTest, takes_a_bounded_amount_while_nobody_reads) {
    std::size_t taken = 0;
    const auto frame = make_frame(1, 4096);
    for (int dry = 0; dry < 100;) {
        if (try_append(client(), frame)) {
            taken += frame.size();
            dry = 0;
        } else {
            ASSERT_TRUE(client().flush());
            ++dry;
        }
        ASSERT_LT(taken, 64u << 20);
    }
    // All of it arrives once somebody reads, and there is room again.
    for (std::size_t got = 0; got < taken; got += frame.size()) {
        ASSERT_TRUE(client().flush());
        ASSERT_TRUE(receive(executor()));
    }
    EXPECT_TRUE(append(client(), frame));
}

TEST_P(ChannelTest, commits_less_than_it_reserved) {
    const auto frame = make_frame(5, 64);
    std::byte* room = client().reserve(wire::kMaxFrameBytes);
    ASSERT_NE(room, nullptr);
    std::memcpy(room, frame.data(), frame.size());
    client().commit(frame.size());
    ASSERT_TRUE(append(client(), make_frame(6, 32)));
    EXPECT_EQ(receive(executor())->frame.size(), 64u);
    EXPECT_EQ(header_of(*receive(executor())).request, 6u);
}

TEST_P(ChannelTest, carries_payloads_from_memory_of_the_caller) {
    constexpr std::uint32_t kPieces = 200;
    std::thread sender([&] {
        Random random(3);
        for (std::uint32_t i = 1; i <= kPieces; ++i) {
            std::vector<std::byte> payload(1 + random.below(client().payload_piece_bytes()));
            fill(payload, i);
            const auto frame = make_frame(i, 40, payload.size());
            std::size_t progress = 0;
            while (!client().send_from(frame, payload, &progress)) {
                if (!client().flush()) return;
                if (!client().wait(true, patience())) return;
            }
            // Commands between payloads, sometimes.
            if (i % 3 == 0 && !append(client(), make_frame(10'000 + i, 96))) return;
        }
        EXPECT_TRUE(push_all(client()));
    });
    Random random(3);
    for (std::uint32_t i = 1; i <= kPieces; ++i) {
        auto received = receive(executor());
        ASSERT_TRUE(received) << received.status().text();
        ASSERT_EQ(header_of(*received).request, i);
        ASSERT_EQ(received->payload.size(), 1 + random.below(client().payload_piece_bytes()));
        ASSERT_TRUE(holds(received->payload, i));
        ASSERT_TRUE(received->buffer);
        executor().release_buffer(received->buffer);
        if (i % 3 == 0) {
            ASSERT_EQ(header_of(*receive(executor())).request, 10'000 + i);
        }
    }
    sender.join();
}

TEST_P(ChannelTest, sends_filled_buffers_in_order_with_frames) {
    for (std::uint32_t i = 1; i <= 300; ++i) {
        Buffer buffer = executor().acquire_buffer();
        ASSERT_TRUE(buffer);
        const std::size_t size = 1 + (i * 997) % buffer.capacity_bytes;
        fill({buffer.data, size}, i);
        ASSERT_TRUE(executor().send_buffer(make_frame(i, 48, size), buffer, size));
        ASSERT_TRUE(try_append(executor(), make_frame(1000 + i, 24)));
        std::thread pusher([&] {
            const auto deadline = patience();
            while (executor().flush() && executor().has_unsent() && Clock::now() < deadline) std::this_thread::yield();
        });
        auto received = receive(client());
        ASSERT_TRUE(received) << received.status().text();
        ASSERT_TRUE(holds(received->payload, i)) << i;
        client().release_buffer(received->buffer);
        ASSERT_EQ(header_of(*receive(client())).request, 1000 + i);
        pusher.join();
    }
}

TEST_P(ChannelTest, takes_buffers_back_in_any_order) {
    Random random(4);
    std::vector<Buffer> held;
    std::deque<std::uint32_t> expected;
    std::uint32_t next = 1;
    for (int step = 0; step < 3000; ++step) {
        if (Buffer buffer = random.below(2) == 0 ? client().acquire_buffer() : Buffer{}) {
            fill({buffer.data, 64}, next);
            ASSERT_TRUE(client().send_buffer(make_frame(next, 32, 64), buffer, 64));
            ASSERT_TRUE(client().flush());
            expected.push_back(next++);
        }
        if (!expected.empty() && held.size() < 8) {
            auto received = receive(executor());
            ASSERT_TRUE(received);
            ASSERT_TRUE(holds(received->payload, expected.front()));
            expected.pop_front();
            held.push_back(received->buffer);
        }
        if (!held.empty() && random.below(2) == 0) {
            std::swap(held[random.below(held.size())], held.back());
            executor().release_buffer(held.back());
            held.pop_back();
        }
    }
    EXPECT_GT(next, 500u);
}

TEST_P(ChannelTest, has_a_bounded_number_of_buffers_and_takes_discarded_ones_back) {
    std::vector<Buffer> held;
    while (Buffer buffer = client().acquire_buffer()) {
        held.push_back(buffer);
        ASSERT_LE(held.size(), 64u);
    }
    for (Buffer buffer : held) client().discard_buffer(buffer);
    EXPECT_TRUE(client().acquire_buffer());
}

TEST_P(ChannelTest, wait_ends_at_its_deadline_without_a_frame) {
    EXPECT_TRUE(executor().wait(false, Clock::now() + std::chrono::milliseconds(5)));
    EXPECT_FALSE(*executor().poll());
}

TEST_P(ChannelTest, notify_wakes_a_wait_in_progress_and_the_next_one) {
    executor().notify();
    EXPECT_TRUE(executor().wait(false, Clock::time_point::max()));
    std::thread waiter([&] { EXPECT_TRUE(executor().wait(false, Clock::time_point::max())); });
    executor().notify();
    waiter.join();
}

TEST_P(ChannelTest, a_frame_wakes_a_sleeping_peer) {
    for (std::uint32_t i = 1; i <= 300; ++i) {
        std::thread waiter([&] {
            auto received = receive(executor());
            ASSERT_TRUE(received);
            EXPECT_EQ(header_of(*received).request, i);
        });
        if (i % 3 == 0) std::this_thread::yield();
        ASSERT_TRUE(append(client(), make_frame(i, 64)));
        waiter.join();
    }
}

TEST_P(ChannelTest, delivers_what_was_sent_before_an_orderly_close) {
    ASSERT_TRUE(append(client(), make_frame(1, 64)));
    ASSERT_TRUE(append(client(), make_frame(2, 64)));
    client().close();
    client().close();
    EXPECT_EQ(header_of(*receive(executor())).request, 1u);
    EXPECT_EQ(header_of(*receive(executor())).request, 2u);
    const Status status = await_end(executor());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.code(), ErrorCode::unavailable);
    EXPECT_FALSE(client().flush());
    EXPECT_FALSE(client().wait(false, patience()));
}

TEST_P(ChannelTest, counts_frames_and_bytes) {
    ASSERT_TRUE(append(client(), make_frame(1, 64)));
    ASSERT_TRUE(receive(executor()));
    EXPECT_EQ(client().counters().frames_sent, 1u);
    EXPECT_EQ(client().counters().bytes_sent, 64u);
    EXPECT_EQ(executor().counters().frames_received, 1u);
    EXPECT_EQ(executor().counters().bytes_received, 64u);
}

TEST_P(ChannelTest, flushes_from_a_second_thread_while_the_first_appends) {
    constexpr std::uint32_t kFrames = 200'000;
    std::atomic<bool> done{false};
    std::thread flusher([&] {
        while (!done || client().has_unsent()) {
            if (!client().flush()) return;
            std::this_thread::yield();
        }
        EXPECT_TRUE(push_all(client()));  // what came after the last flush
    });
    std::thread appender([&] {
        std::vector<std::byte> frame = make_frame(0, 96);
        for (std::uint32_t i = 1; i <= kFrames; ++i) {
            reinterpret_cast<wire::FrameHeader*>(frame.data())->request = i;
            const auto deadline = patience();
            while (!try_append(client(), frame) && Clock::now() < deadline) std::this_thread::yield();
        }
        done = true;
    });
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 1; i <= kFrames; ++i) {
        auto received = receive(executor());
        ASSERT_TRUE(received) << received.status().text();
        wrong += header_of(*received).request != i;
    }
    EXPECT_EQ(wrong, 0u);
    appender.join();
    flusher.join();
}

}  // namespace
}  // namespace weft::transport
