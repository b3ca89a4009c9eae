// What only shm has: memory files that must be sealed, segments, and a client that writes whatever it likes into them.
#include "transport/shm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <thread>

#include "transport/channel_test.h"
#include "transport/factory.h"

namespace weft::transport {
namespace {

using namespace testing;

constexpr ShmGeometry kGeometry{128 << 10, 4, 16 << 10};

FileRecord rings_record(const ShmGeometry& geometry) {
    FileRecord record{};
    record.kind = kRingsRecord;
    record.version = kRecordVersion;
    record.slot_count = static_cast<std::uint16_t>(geometry.slot_count);
    record.size_bytes = geometry.file_bytes();
    record.ring_bytes = static_cast<std::uint32_t>(geometry.ring_bytes);
    record.slot_bytes = static_cast<std::uint32_t>(geometry.slot_bytes);
    return record;
}

// What accept_shm says to a client that passes this record and file.
Status offer(const FileRecord& record, int file) {
    auto sockets = make_socket_pair(PathKind::shm);
    EXPECT_TRUE(sockets);
    LocalSocket client(std::move(sockets->first));
    EXPECT_TRUE(client.send_file(record, file, patience()));
    auto channel = accept_shm(std::move(sockets->second), {});
    return channel ? Status::ok() : channel.take_status();
}

TEST(ShmAccept, takes_a_sealed_file_of_the_right_size) {
    auto file = make_sealed_file("weft-test", kGeometry.file_bytes());
    ASSERT_TRUE(file);
    EXPECT_TRUE(offer(rings_record(kGeometry), file->get()));
}

TEST(ShmAccept, refuses_files_that_could_shrink) {
    auto file = make_memory_file("weft-test", kGeometry.file_bytes(), true);
    ASSERT_TRUE(file);
    EXPECT_EQ(offer(rings_record(kGeometry), file->get()).code(), ErrorCode::protocol);
    ASSERT_EQ(::fcntl(file->get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    EXPECT_EQ(offer(rings_record(kGeometry), file->get()).code(), ErrorCode::protocol);
}

TEST(ShmAccept, refuses_files_that_are_too_small_or_of_another_kind) {
    auto file = make_sealed_file("weft-test", kGeometry.file_bytes() - 4096);
    ASSERT_TRUE(file);
    EXPECT_EQ(offer(rings_record(kGeometry), file->get()).code(), ErrorCode::protocol);
    UniqueFd device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(offer(rings_record(kGeometry), device.get()).code(), ErrorCode::protocol);
}

TEST(ShmAccept, refuses_sizes_out_of_range) {
    const ShmGeometry wrong[] = {{96 << 10, 4, 16 << 10},  {1 << 10, 4, 16 << 10},    {32 << 20, 4, 16 << 10},
                                 {128 << 10, 0, 16 << 10}, {128 << 10, 65, 16 << 10}, {128 << 10, 4, 16 << 20},
                                 {128 << 10, 4, 5000}};
    auto file = make_sealed_file("weft-test", 64 << 20);
    ASSERT_TRUE(file);
    for (const ShmGeometry& geometry : wrong) {
        EXPECT_EQ(offer(rings_record(geometry), file->get()).code(), ErrorCode::protocol);
    }
}

TEST(ShmAccept, ends_when_the_client_goes_or_sends_rubbish) {
    auto sockets = make_socket_pair(PathKind::shm);
    ASSERT_TRUE(sockets);
    sockets->first.reset();
    EXPECT_EQ(accept_shm(std::move(sockets->second), {}).status().code(), ErrorCode::unavailable);
    auto others = make_socket_pair(PathKind::shm);
    ASSERT_TRUE(others);
    const std::string rubbish(200, 'x');
    ASSERT_GT(::send(others->first.get(), rubbish.data(), rubbish.size(), 0), 0);
    EXPECT_EQ(accept_shm(std::move(others->second), {}).status().code(), ErrorCode::protocol);
}

TEST(ShmAccept, does_not_wait_forever_for_a_silent_client) {
    auto sockets = make_socket_pair(PathKind::shm);
    ASSERT_TRUE(sockets);
    ChannelOptions options;
    options.liveness_timeout = std::chrono::milliseconds(20);
    EXPECT_EQ(accept_shm(std::move(sockets->second), options).status().code(), ErrorCode::unavailable);
}

TEST(ShmSegments, show_the_same_memory_on_both_ends) {
    ChannelPair pair = must_make_pair(PathKind::shm);
    for (std::uint32_t segment = 1; segment <= 20; ++segment) {
        auto mine = pair.client->create_segment(segment, 1 << 20);
        ASSERT_TRUE(mine) << mine.status().text();
        ASSERT_TRUE(append(*pair.client, make_frame(segment, 40)));  // bells between the records
        fill(*mine, segment);
    }
    for (std::uint32_t segment = 20; segment >= 1; --segment) {
        auto theirs = pair.executor->receive_segment(segment, 1 << 20);
        ASSERT_TRUE(theirs) << theirs.status().text();
        EXPECT_TRUE(holds(*theirs, segment));
        pair.executor->release_segment(segment);
        pair.client->release_segment(segment);
    }
    EXPECT_FALSE(pair.executor->receive_segment(21, 1 << 20));
}

TEST(ShmSegments, refuse_a_size_that_the_file_does_not_have) {
    ChannelPair pair = must_make_pair(PathKind::shm);
    ASSERT_TRUE(pair.client->create_segment(1, 1 << 20));
    EXPECT_EQ(pair.executor->receive_segment(1, 2 << 20).status().code(), ErrorCode::protocol);
}

// --- a hostile client ------------------------------------------------------------------------------------------------

constexpr std::size_t kReturnedOffset = 2 * kCacheLineBytes;  // after the cursors of the client's direction

struct Hostile {
    Mapping memory;
    Random random{0};
    std::uint64_t tail = 0;
    std::uint64_t free_slots = 15;

    std::uint64_t plausible() {
        switch (random.below(6)) {
            case 0: return random.next();
            case 1: return random.below(256);
            case 2: return kGeometry.ring_bytes + random.below(3) - 1;
            case 3: return ~std::uint64_t{0} - random.below(64);
            case 4: return tail + 8 * random.below(64);
            default: return std::uint64_t{1} << random.below(64);
        }
    }
    void write(std::size_t offset, std::uint64_t value, std::size_t bytes) {
        std::memcpy(memory.data() + offset, &value, bytes);
    }
    // A good frame, sometimes with a payload in a slot that came back, rarely in any.
    void send_good() {
        free_slots |= word(kReturnedOffset).exchange(0) & 15;
        const bool any = random.below(64) == 0;
        const auto slot = static_cast<std::uint32_t>(any ? random.below(6) : random.below(4));
        const bool has_payload = any || (free_slots & slot_bit(slot)) != 0;
        const std::size_t payload = has_payload ? 1 + random.below(kGeometry.slot_bytes) : 0;
        auto frame = make_frame(static_cast<std::uint32_t>(tail), 24 + 8 * random.below(40), payload);
        reinterpret_cast<wire::FrameHeader*>(frame.data())->payload_slot = slot;
        if (has_payload) free_slots &= ~slot_bit(slot);
        const std::size_t ring = kGeometry.ring_offset(0);
        for (std::byte byte : frame) memory.data()[ring + tail++ % kGeometry.ring_bytes] = byte;
        word(0).store(tail, std::memory_order_release);
    }
    std::atomic_ref<std::uint64_t> word(std::size_t offset) {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory.data() + offset));
    }
    void mutate() {
        switch (random.below(8)) {
            case 0:
            case 1:
            case 2: send_good(); break;
            case 3:  // a control word: positions, returned slots, sleep flags
                if (random.below(20) == 0) write(8 * random.below(64), plausible(), 8);
                break;
            case 4:
            case 5:  // the frames under the reader's eyes
                if (random.below(10) > 0) break;
                write(kGeometry.ring_offset(0) + (tail - 8 * random.below(32)) % (kGeometry.ring_bytes - 8),
                      plausible(), 4);
                break;
            case 6: write(kGeometry.ring_offset(1) + random.below(kGeometry.ring_bytes - 8), plausible(), 8); break;
            default: write(kGeometry.slots_offset(0) + random.below(kGeometry.slot_bytes * 4), plausible(), 4); break;
        }
    }
};

constexpr int kRounds = 400;
constexpr int kMutations = 400;

// Shared by the two processes of the test.
struct Progress {
    std::atomic<std::uint64_t> mutations{0};
    std::atomic<int> rounds_accepted{0};
};

// In the child: one scribbler per connection, at work while the executor reads.
void scribble(std::vector<UniqueFd> sockets, Progress* progress) {
    for (int round = 0; round < kRounds; ++round) {
        auto file = make_sealed_file("weft-test", kGeometry.file_bytes());
        auto memory = file ? Mapping::shared(file->get(), 0, kGeometry.file_bytes()) : file.take_status();
        if (!memory) ::_exit(3);
        LocalSocket socket(std::move(sockets[static_cast<std::size_t>(round)]));
        if (!socket.send_file(rings_record(kGeometry), file->get(), patience())) ::_exit(4);
        const auto deadline = patience();
        while (progress->rounds_accepted.load() <= round && Clock::now() < deadline) ::sched_yield();
        Hostile hostile{std::move(*memory), Random(static_cast<std::uint64_t>(round))};
        for (int i = 0; i < kMutations; ++i) {
            hostile.mutate();
            if (i % 16 == 0) socket.send_bell();
            if (i % 64 == 0) ::sched_yield();
            progress->mutations.fetch_add(1, std::memory_order_relaxed);
        }
    }
    ::_exit(0);
}

// As an executor would: reads, answers, uses payloads, gives buffers back; until the session ends.
void serve_hostile(Channel& channel, Random& random, std::uint64_t* frames) {
    const auto deadline = patience();
    std::vector<Buffer> held;
    std::uint64_t sum = 0;
    for (;;) {
        ASSERT_LT(Clock::now(), deadline) << "the executor hangs";
        auto received = channel.poll();
        if (!received) return;
        if (*received) {
            const wire::FrameHeader header = header_of(*received);
            ++*frames;
            ASSERT_EQ(header.size_bytes, received->frame.size());
            ASSERT_EQ(header.payload_bytes, received->payload.size());
            for (std::byte byte : received->payload) sum += static_cast<std::uint64_t>(byte);
            if (received->buffer) held.push_back(received->buffer);
            ASSERT_EQ(std::memcmp(&header, received->frame.data(), sizeof header), 0) << "a checked frame changed";
        }
        if (held.size() > random.below(4)) {
            channel.release_buffer(held.back());
            held.pop_back();
        }
        (void)try_append(channel, make_frame(1, 64));
        if (Buffer buffer = channel.acquire_buffer()) {
            if (!channel.send_buffer(make_frame(2, 32, 100), buffer, 100)) channel.discard_buffer(buffer);
        }
        if (!channel.flush()) continue;  // what came before the end is still to be read
        if (!*received && !channel.wait(random.below(2) == 0, Clock::now() + std::chrono::milliseconds(2))) return;
    }
}

TEST(ShmHostile, a_client_that_scribbles_cannot_crash_or_hang_the_executor) {
    std::vector<UniqueFd> mine, theirs;
    for (int round = 0; round < kRounds; ++round) {
        auto sockets = make_socket_pair(PathKind::shm);
        ASSERT_TRUE(sockets);
        theirs.push_back(std::move(sockets->first));
        mine.push_back(std::move(sockets->second));
    }
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* progress = new (page) Progress;
    std::uint64_t frames = 0;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        mine.clear();
        scribble(std::move(theirs), progress);
    }
    theirs.clear();
    Random random(11);
    for (UniqueFd& socket : mine) {
        auto channel = accept_shm(std::move(socket), {});
        ASSERT_TRUE(channel) << channel.status().text();
        progress->rounds_accepted.fetch_add(1);
        serve_hostile(**channel, random, &frames);
        if (HasFatalFailure()) break;
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_GE(progress->mutations.load(), 100'000u);
    EXPECT_GT(frames, 5'000u);  // good frames got through before the bad ones
    ::munmap(page, 4096);
}

}  // namespace
}  // namespace weft::transport
