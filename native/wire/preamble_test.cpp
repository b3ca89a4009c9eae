#include "wire/preamble.h"

#include <gtest/gtest.h>

namespace weft::wire {
namespace {

TEST(Preamble, IsAcceptedAsMade) {
    const Preamble preamble = make_preamble(Secret{1, 2, 3}, 42, PathCode::shm, 5);
    EXPECT_TRUE(check_preamble(preamble));
    EXPECT_EQ(preamble.process_id, 42u);
    EXPECT_TRUE(check_preamble_reply(make_preamble_reply(PreambleCode::accepted, 0, "")));
}

TEST(Preamble, OfAnotherProgramOrVersionIsRefused) {
    Preamble preamble = make_preamble({}, 1, PathCode::tcp, 0);
    preamble.magic[0] = 'G';
    EXPECT_EQ(check_preamble(preamble).code(), ErrorCode::protocol);
    preamble = make_preamble({}, 1, PathCode::tcp, 0);
    preamble.protocol_oldest = preamble.protocol_newest = kProtocolVersion + 1;
    EXPECT_EQ(check_preamble(preamble).code(), ErrorCode::version);
    preamble = make_preamble({}, 1, static_cast<PathCode>(9), 0);
    EXPECT_EQ(check_preamble(preamble).code(), ErrorCode::protocol);
}

TEST(Preamble, ReplyCarriesTheServersWords) {
    const Status status = check_preamble_reply(make_preamble_reply(PreambleCode::secret, 0, "unknown lease"));
    EXPECT_EQ(status.code(), ErrorCode::permission_denied);
    EXPECT_EQ(status.text(), "unknown lease");
    PreambleReply full = make_preamble_reply(PreambleCode::unavailable, 0, std::string(1000, 'x'));
    EXPECT_EQ(check_preamble_reply(full).text().size(), full.text.size() - 1);
    full.text.fill('y');
    EXPECT_EQ(check_preamble_reply(full).text().size(), full.text.size())
        << "no terminator: read up to the end, not beyond";
}

TEST(Preamble, CommonProtocolIsTheNewestShared) {
    EXPECT_EQ(common_protocol({1, 3}, {2, 5}), 3u);
    EXPECT_EQ(common_protocol({4, 9}, {2, 5}), 5u);
    EXPECT_EQ(common_protocol({1, 1}, {2, 5}), std::nullopt);
    EXPECT_EQ(common_protocol({6, 9}, {2, 5}), std::nullopt);
}

}  // namespace
}  // namespace weft::wire
