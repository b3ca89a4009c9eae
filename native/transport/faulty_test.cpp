// The faulty channel does what its faults say, and the same for the same seed.
#include "transport/faulty.h"

#include "transport/channel_test.h"

namespace weft::transport {
namespace {

using namespace testing;

// Sizes and numbers of the frames that come through.
std::vector<std::uint64_t> traffic(const Faults& faults, std::uint32_t frames) {
    ChannelPair pair = must_make_pair(PathKind::shm);
    auto faulty = make_faulty(std::move(pair.executor), faults);
    std::vector<std::uint64_t> seen;
    for (std::uint32_t i = 1; i <= frames; ++i) {
        if (!append(*pair.client, make_frame(i, 96))) break;
        auto received = receive(*faulty);
        if (!received) break;
        const bool intact =
            holds(received->frame.subspan(sizeof(wire::FrameHeader)), i) && header_of(*received).request == i;
        seen.push_back(received->frame.size() * 2 + intact);
    }
    return seen;
}

TEST(FaultyChannel, changes_nothing_without_faults) {
    EXPECT_EQ(traffic({}, 50), std::vector<std::uint64_t>(50, 96 * 2 + 1));
}

TEST(FaultyChannel, cuts_after_the_given_number_of_frames) {
    EXPECT_EQ(traffic({.cut_after_frames = 7}, 50).size(), 7u);
}

TEST(FaultyChannel, spoils_truncates_and_delays_from_its_seed) {
    const Faults faults{.seed = 5, .garbage_one_in = 3, .truncate_one_in = 4, .delay_one_in = 3};
    const auto seen = traffic(faults, 200);
    EXPECT_EQ(seen.size(), 200u);
    EXPECT_EQ(seen, traffic(faults, 200));
    EXPECT_GT(std::count(seen.begin(), seen.end(), 96u * 2), 20);
    EXPECT_GT(std::count_if(seen.begin(), seen.end(), [](auto value) { return value / 2 < 96; }), 20);
}

}  // namespace
}  // namespace weft::transport
