#include "shim/transfers.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::shim {
namespace {

TEST(Transfers, PlacesOnlyInsideTheDestination) {
    Transfers transfers;
    std::vector<std::byte> memory(100);
    const auto number = transfers.open(memory, true);
    EXPECT_EQ(transfers.place(number, 10, 90).data(), memory.data() + 10);
    EXPECT_TRUE(transfers.place(number, 10, 91).empty());
    EXPECT_TRUE(transfers.place(number, UINT64_MAX, 2).empty());
    EXPECT_TRUE(transfers.place(number + 1, 0, 1).empty());
}

TEST(Transfers, EndsWithItsLastByte) {
    Transfers transfers;
    std::vector<std::byte> memory(100);
    const auto number = transfers.open(memory, true);
    EXPECT_FALSE(transfers.landed(number, 60));
    EXPECT_TRUE(transfers.overlaps(memory.data() + 99, 1));
    EXPECT_TRUE(transfers.landed(number, 40));
    EXPECT_FALSE(transfers.overlaps(memory.data(), 100));
    EXPECT_TRUE(transfers.empty());
}

TEST(Transfers, FailedWorkClosesItsBackgroundTransfersOnly) {
    Transfers transfers;
    std::vector<std::byte> memory(8);
    const auto early = transfers.open(memory, true), late = transfers.open(memory, true),
               unsent = transfers.open(memory, true);
    const auto waited_for = transfers.open(memory, false);
    transfers.belongs_to(early, 5);
    transfers.belongs_to(late, 9);
    EXPECT_EQ(transfers.close_up_to(7), 1u);
    EXPECT_TRUE(transfers.place(early, 0, 1).empty());
    for (const auto number : {late, unsent, waited_for}) EXPECT_FALSE(transfers.place(number, 0, 1).empty());
}

}  // namespace
}  // namespace weft::shim
