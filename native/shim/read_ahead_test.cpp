#include "shim/read_ahead.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::shim {
namespace {

using Range = ReadAhead::Range;
constexpr Range kLoss{0x1000, 4}, kOther{0x2000, 8};
constexpr std::array<std::byte, 4> kBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

TEST(ReadAhead, LearnsTheCopyThatFollowsASynchronisation) {
    ReadAhead ahead;
    std::array<std::byte, 4> out{};
    EXPECT_EQ(ahead.wanted(), Range{});
    ahead.synchronised(7, {}, {});
    EXPECT_FALSE(ahead.take(7, kLoss, out.data()));
    EXPECT_EQ(ahead.wanted(), kLoss);
    ahead.synchronised(9, kLoss, kBytes);
    EXPECT_TRUE(ahead.take(9, kLoss, out.data()));
    EXPECT_EQ(out, kBytes);
    EXPECT_TRUE(ahead.take(9, kLoss, out.data())) << "as long as nothing was submitted";
    EXPECT_EQ(ahead.wanted(), kLoss);
}

TEST(ReadAhead, WorkInBetweenMakesTheBytesWorthless) {
    ReadAhead ahead;
    std::array<std::byte, 4> out{};
    ahead.synchronised(9, kLoss, kBytes);
    EXPECT_FALSE(ahead.take(10, kLoss, out.data()));
    EXPECT_EQ(out[0], std::byte{0});
    EXPECT_EQ(ahead.wanted(), Range{}) << "a copy behind other work is no reason to read ahead";
}

TEST(ReadAhead, UnusedBytesEndTheHabit) {
    ReadAhead ahead;
    std::array<std::byte, 4> out{};
    ahead.synchronised(1, {}, {});
    EXPECT_FALSE(ahead.take(1, kLoss, out.data()));
    EXPECT_EQ(ahead.wanted(), kLoss);
    ahead.synchronised(2, kLoss, kBytes);
    EXPECT_EQ(ahead.wanted(), Range{});
}

TEST(ReadAhead, FollowsTheProgramToAnotherPlace) {
    ReadAhead ahead;
    std::array<std::byte, 8> out{};
    ahead.synchronised(2, kLoss, kBytes);
    EXPECT_FALSE(ahead.take(2, kOther, out.data()));
    EXPECT_FALSE(ahead.take(2, {kLoss.source, 8}, out.data())) << "more than was brought";
    EXPECT_FALSE(ahead.take(2, kOther, out.data()));
    EXPECT_TRUE(ahead.take(2, kLoss, out.data()));
    EXPECT_EQ(ahead.wanted(), kOther);
}

TEST(ReadAhead, ASynchronisationThatFailedToBringBytesIsNoAnswer) {
    ReadAhead ahead;
    std::array<std::byte, 4> out{};
    ahead.synchronised(3, kLoss, {});
    EXPECT_FALSE(ahead.take(3, kLoss, out.data()));
}

}  // namespace
}  // namespace weft::shim
