// A peer that is killed: the other end learns it, asleep or busy, and nothing stays behind.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "transport/channel_test.h"

namespace weft::transport {
namespace {

using namespace testing;

class DeathTest : public ::testing::TestWithParam<PathKind> {};
INSTANTIATE_TEST_SUITE_P(Path, DeathTest, ::testing::Values(PathKind::shm, PathKind::tcp), path_name);

std::size_t count_entries(const char* folder) {
    std::size_t count = 0;
    DIR* directory = ::opendir(folder);
    if (directory == nullptr) return 0;
    while (::readdir(directory) != nullptr) ++count;
    ::closedir(directory);
    return count;
}

std::size_t count_mappings() {
    std::ifstream maps("/proc/self/maps");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

// A client in another process that has sent one frame, then waits for its death.
pid_t start_client(PathKind kind, UniqueFd socket, UniqueFd* other_end) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    other_end->reset();
    auto channel = open_client(kind, std::move(socket), {});
    if (!channel || !append(**channel, make_frame(1, 64))) ::_exit(2);
    if (kind == PathKind::shm && !(*channel)->create_segment(1, 1 << 20)) ::_exit(3);
    for (;;) (void)(*channel)->wait(false, Clock::time_point::max());
}

void kill_client_of(Channel& executor, pid_t child, bool busy) {
    ASSERT_TRUE(receive(executor));
    ::kill(child, SIGKILL);
    Status status;
    const auto deadline = patience();
    while (status && Clock::now() < deadline) {
        // A busy executor never sleeps: its waits are over at once.
        status = executor.wait(false, busy ? Clock::now() : deadline);
        if (status && !executor.poll()) break;
    }
    EXPECT_LT(Clock::now(), deadline);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(await_end(executor).code(), ErrorCode::unavailable);
    EXPECT_FALSE(executor.flush());
}

TEST_P(DeathTest, of_a_client_by_sigkill_ends_the_executors_channel) {
    for (const bool busy : {false, true}) {
        auto sockets = make_socket_pair(GetParam());
        ASSERT_TRUE(sockets);
        const pid_t child = start_client(GetParam(), std::move(sockets->first), &sockets->second);
        ASSERT_GT(child, 0);
        sockets->first.reset();
        auto executor = open_executor(GetParam(), std::move(sockets->second), {});
        ASSERT_TRUE(executor);
        kill_client_of(**executor, child, busy);
    }
}

TEST_P(DeathTest, leaves_no_descriptor_file_or_mapping) {
    const std::size_t files_before = count_entries("/dev/shm");
    std::size_t descriptors = 0, mappings = 0;
    for (int round = 0; round < 6; ++round) {
        {
            ChannelPair pair = must_make_pair(GetParam());
            ASSERT_TRUE(append(*pair.client, make_frame(1, 64)));
            ASSERT_TRUE(receive(*pair.executor));
            if (GetParam() == PathKind::shm) {
                ASSERT_TRUE(pair.client->create_segment(1, 1 << 20));
                ASSERT_TRUE(pair.executor->receive_segment(1, 1 << 20));
            }
        }
        if (round == 2) descriptors = count_entries("/proc/self/fd"), mappings = count_mappings();
    }
    EXPECT_EQ(count_entries("/proc/self/fd"), descriptors);
    EXPECT_LE(count_mappings(), mappings);
    EXPECT_LE(count_entries("/dev/shm"), files_before);
}

// A forked child lets go: the parent's session goes on, and ends when the parent ends it although the child lives.
TEST_P(DeathTest, a_forked_child_that_abandons_does_not_hold_the_session) {
    ChannelPair pair = must_make_pair(GetParam());
    int gate[2];
    ASSERT_EQ(::pipe(gate), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        pair.client->abandon();
        pair.executor->abandon();
        ::close(gate[1]);
        char byte;
        (void)!::read(gate[0], &byte, 1);  // until the parent closes its end
        ::_exit(0);
    }
    ASSERT_TRUE(append(*pair.client, make_frame(1, 64)));
    EXPECT_TRUE(receive(*pair.executor));
    pair.client.reset();
    EXPECT_EQ(await_end(*pair.executor).code(), ErrorCode::unavailable);
    ::close(gate[0]);
    ::close(gate[1]);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace weft::transport
