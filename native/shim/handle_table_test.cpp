#include "shim/handle_table.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::shim {
namespace {

using Table = HandleTable<int, HandleTag::stream>;

TEST(HandleTable, FindsWhatIsAliveAndNothingElse) {
    Table table;
    const auto handle = table.insert(std::make_shared<int>(7));
    EXPECT_EQ(*table.find(handle), 7);
    for (const std::uint64_t wrong :
         std::initializer_list<std::uint64_t>{0, 1, 2, handle + 1, handle ^ (std::uint64_t{1} << 40), UINT64_MAX})
        EXPECT_EQ(table.find(wrong), nullptr) << wrong;
    EXPECT_EQ(*table.remove(handle), 7);
    EXPECT_EQ(table.find(handle), nullptr);
    EXPECT_EQ(table.remove(handle), nullptr);
}

TEST(HandleTable, AReusedPlaceHasAnotherHandle) {
    Table table;
    const auto first = table.insert(std::make_shared<int>(1));
    table.remove(first);
    const auto second = table.insert(std::make_shared<int>(2));
    EXPECT_NE(first, second);
    EXPECT_EQ(table.find(first), nullptr);
    EXPECT_EQ(*table.find(second), 2);
}

TEST(HandleTable, HandlesOfOtherKindsAreNotFound) {
    Table streams;
    HandleTable<int, HandleTag::event> events;
    const auto stream = streams.insert(std::make_shared<int>(1));
    events.insert(std::make_shared<int>(2));
    EXPECT_EQ(events.find(stream), nullptr);
}

TEST(HandleTable, ServesThreads) {
    Table table;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&table, t] {
            for (int i = 0; i < 5000; ++i) {
                const auto handle = table.insert(std::make_shared<int>(t));
                ASSERT_EQ(*table.find(handle), t);
                ASSERT_TRUE(table.remove(handle));
            }
        });
    for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft::shim
