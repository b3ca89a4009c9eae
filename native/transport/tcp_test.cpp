// What only tcp has: a byte stream that arrives in any pieces, payloads placed by the user, and a network that can be
// cut.
#include "transport/tcp.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "transport/channel_test.h"
#include "transport/factory.h"

namespace weft::transport {
namespace {

using namespace testing;

struct RawAndChannel {
    UniqueFd raw;
    std::unique_ptr<Channel> channel;
    int channel_socket = -1;  // owned by the channel
};

RawAndChannel make_raw(const ChannelOptions& options = {}) {
    auto sockets = make_socket_pair(PathKind::tcp);
    EXPECT_TRUE(sockets);
    RawAndChannel made;
    made.raw = std::move(sockets->first);
    made.channel_socket = sockets->second.get();
    auto channel = open_tcp(std::move(sockets->second), options);
    EXPECT_TRUE(channel) << channel.status().text();
    made.channel = std::move(*channel);
    return made;
}

void write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
}

void append_bytes(std::vector<std::byte>& stream, std::span<const std::byte> bytes) {
    stream.insert(stream.end(), bytes.begin(), bytes.end());
}

// Frames of all shapes with payloads of odd lengths between them.
std::vector<std::byte> make_stream(std::uint32_t frames, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::byte> stream;
    for (std::uint32_t i = 1; i <= frames; ++i) {
        const std::size_t payload_bytes = random.below(3) == 0 ? 1 + random.below(3000) : 0;
        append_bytes(stream, make_frame(i, 24 + 8 * random.below(30), payload_bytes));
        std::vector<std::byte> payload(payload_bytes);
        fill(payload, i + 77);
        append_bytes(stream, payload);
    }
    return stream;
}

void expect_stream(Channel& channel, std::uint32_t frames) {
    for (std::uint32_t i = 1; i <= frames; ++i) {
        auto received = receive(channel);
        ASSERT_TRUE(received) << received.status().text();
        ASSERT_EQ(header_of(*received).request, i);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(received->frame.data()) % 8, 0u);
        ASSERT_TRUE(holds(received->frame.subspan(sizeof(wire::FrameHeader)), i));
        ASSERT_TRUE(holds(received->payload, i + 77));
        if (received->buffer) channel.release_buffer(received->buffer);
    }
}

TEST(TcpChannel, reads_a_stream_that_comes_byte_by_byte) {
    RawAndChannel ends = make_raw();
    const auto stream = make_stream(30, 1);
    std::thread writer([&] {
        int one = 1;
        ::setsockopt(ends.raw.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (std::byte byte : stream) write_all(ends.raw.get(), std::span(&byte, 1));
    });
    expect_stream(*ends.channel, 30);
    writer.join();
}

TEST(TcpChannel, reads_a_stream_that_comes_in_random_pieces) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        RawAndChannel ends = make_raw();
        const auto stream = make_stream(400, seed);
        std::thread writer([&] {
            Random random(seed);
            std::span<const std::byte> rest(stream);
            while (!rest.empty()) {
                const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + random.below(6000));
                write_all(ends.raw.get(), rest.first(piece));
                rest = rest.subspan(piece);
            }
        });
        expect_stream(*ends.channel, 400);
        writer.join();
    }
}

TEST(TcpChannel, ends_with_a_protocol_error_on_garbage) {
    std::uint32_t protocol_errors = 0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        RawAndChannel ends = make_raw();
        std::vector<std::byte> garbage(4096);
        fill(garbage, seed);
        // Half of the streams begin well.
        std::vector<std::byte> stream = seed % 2 == 0 ? make_stream(5, seed) : std::vector<std::byte>{};
        append_bytes(stream, garbage);
        write_all(ends.raw.get(), stream);
        ends.raw.reset();
        const Status status = await_end(*ends.channel);
        ASSERT_FALSE(status);
        protocol_errors += status.code() == ErrorCode::protocol;
    }
    EXPECT_GT(protocol_errors, 290u);  // a few sizes in the garbage are possible ones; those streams end as cut
}

TEST(TcpChannel, survives_random_changes_of_a_good_stream) {
    Random random(9);
    for (int round = 0; round < 300; ++round) {
        RawAndChannel ends = make_raw();
        auto stream = make_stream(20, random.next());
        for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
            stream[random.below(stream.size())] = static_cast<std::byte>(random.next());
        }
        stream.resize(1 + random.below(stream.size()));
        write_all(ends.raw.get(), stream);
        ends.raw.reset();
        ASSERT_FALSE(await_end(*ends.channel));
    }
}

TEST(TcpChannel, puts_payloads_where_the_placer_says) {
    ChannelPair pair = must_make_pair(PathKind::tcp);
    std::vector<std::byte> target(1 << 20), source(1 << 20);
    fill(source, 1);
    std::size_t placed = 0;
    pair.executor->set_placer([&](std::span<const std::byte> frame) -> void* {
        wire::FrameHeader header;
        std::memcpy(&header, frame.data(), sizeof header);
        placed += header.payload_bytes;
        return header.request % 2 == 0 ? target.data() + (header.request - 2) / 2 * 8192 : nullptr;
    });
    std::thread sender([&] {
        for (std::uint32_t i = 2; i < 200; ++i) {
            std::size_t progress = 0;
            const auto payload = std::span(source).subspan((i - 2) / 2 * 8192, 8192);
            while (!pair.client->send_from(make_frame(i, 32, 8192), payload, &progress)) {
                if (!pair.client->wait(true, patience())) return;
            }
        }
        EXPECT_TRUE(push_all(*pair.client));
    });
    for (std::uint32_t i = 2; i < 200; ++i) {
        auto received = receive(*pair.executor);
        ASSERT_TRUE(received) << received.status().text();
        ASSERT_EQ(received->buffer.data == nullptr, i % 2 == 0);
        ASSERT_TRUE(
            std::equal(received->payload.begin(), received->payload.end(), source.begin() + (i - 2) / 2 * 8192));
        if (received->buffer) pair.executor->release_buffer(received->buffer);
    }
    sender.join();
    EXPECT_EQ(placed, 198u * 8192);
}

TEST(TcpChannel, goes_on_when_a_staging_buffer_comes_back) {
    ChannelOptions options;
    options.staging_count = 2;
    ChannelPair pair = must_make_pair(PathKind::tcp, options);
    std::vector<std::byte> payload(1000);
    for (std::uint32_t i = 1; i <= 3; ++i) {
        std::size_t progress = 0;
        ASSERT_TRUE(pair.client->send_from(make_frame(i, 32, payload.size()), payload, &progress));
    }
    auto first = receive(*pair.executor);
    ASSERT_TRUE(first);
    const Buffer held = first->buffer;
    ASSERT_TRUE(receive(*pair.executor));
    ASSERT_TRUE(pair.executor->wait(false, Clock::now() + std::chrono::milliseconds(1)));
    EXPECT_FALSE(*pair.executor->poll());
    std::thread releaser([&] { pair.executor->release_buffer(held); });
    auto third = receive(*pair.executor);
    releaser.join();
    ASSERT_TRUE(third);
    EXPECT_EQ(header_of(*third).request, 3u);
}

// Drops everything that arrives at this socket, acknowledgements too: a cut wire without a network namespace.
void cut(int socket) {
    sock_filter drop[] = {{BPF_RET | BPF_K, 0, 0, 0}};
    sock_fprog program{1, drop};
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

ChannelOptions short_liveness() {
    ChannelOptions options;
    options.liveness_timeout = std::chrono::milliseconds(2000);
    return options;
}

TEST(TcpChannel, a_cut_while_idle_ends_it) {
    RawAndChannel ends = make_raw(short_liveness());
    cut(ends.raw.get());
    cut(ends.channel_socket);
    const Status status = await_end(*ends.channel);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.code(), ErrorCode::unavailable);
}

TEST(TcpChannel, a_cut_with_data_under_way_ends_it) {
    RawAndChannel ends = make_raw(short_liveness());
    cut(ends.raw.get());
    cut(ends.channel_socket);
    ASSERT_TRUE(append(*ends.channel, make_frame(1, 4096)));
    const Status status = await_end(*ends.channel);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.code(), ErrorCode::unavailable);
}

TEST(TcpChannel, a_cut_behind_a_closed_window_ends_it) {
    RawAndChannel ends = make_raw(short_liveness());
    while (try_append(*ends.channel, make_frame(1, 32'768))) ASSERT_TRUE(ends.channel->flush());
    cut(ends.raw.get());
    cut(ends.channel_socket);
    EXPECT_FALSE(await_end(*ends.channel));
}

// A peer in a debugger: its kernel acknowledges and closes the window, nobody reads for longer than the time-out.
TEST(TcpChannel, a_peer_that_does_not_read_is_alive) {
    ChannelOptions options;
    options.liveness_timeout = std::chrono::milliseconds(1000);
    RawAndChannel ends = make_raw(options);
    while (try_append(*ends.channel, make_frame(1, 32'768))) ASSERT_TRUE(ends.channel->flush());
    const auto until = Clock::now() + std::chrono::milliseconds(3500);
    while (Clock::now() < until) {
        const Status status = ends.channel->wait(true, until);
        ASSERT_TRUE(status) << status.text();
    }
}

}  // namespace
}  // namespace weft::transport
