// Accounting of device memory: the cap, and which extents are allowed.
#include "executor/memory.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace weft::executor {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kGranularity = 2 * kMiB;

TEST(MemoryAccount, TakesExactlyUpToTheCap) {
    MemoryAccount account(10);
    EXPECT_TRUE(account.take(6));
    EXPECT_FALSE(account.take(5));
    EXPECT_TRUE(account.take(4));
    EXPECT_EQ(account.free_bytes(), 0u);
    account.give(10);
    EXPECT_EQ(account.free_bytes(), 10u);
    EXPECT_EQ(account.peak_bytes(), 10u);
    EXPECT_FALSE(account.take(~std::uint64_t{0}));
}

TEST(ExtentMap, RefusesWhatIsNotAnExtentOfTheWindow) {
    ExtentMap map;
    const std::uint64_t base = 64 * kMiB;
    map.set_window(base, 64 * kMiB);
    EXPECT_EQ(map.check(base, 64 * kMiB, kGranularity), nullptr);
    EXPECT_NE(map.check(base, 66 * kMiB, kGranularity), nullptr);
    EXPECT_NE(map.check(base, 0, kGranularity), nullptr);
    EXPECT_NE(map.check(base, kMiB, kGranularity), nullptr);
    EXPECT_NE(map.check(base + kMiB, kGranularity, kGranularity), nullptr);
    EXPECT_NE(map.check(base - kGranularity, kGranularity, kGranularity), nullptr);
    EXPECT_NE(map.check(base + 62 * kMiB, 4 * kMiB, kGranularity), nullptr);
    EXPECT_NE(map.check(base, ~std::uint64_t{0} - kGranularity + 1, kGranularity), nullptr);
}

TEST(ExtentMap, ExtentsNeverOverlapAndLeaveAsTheyCame) {
    Random random(3);
    ExtentMap map;
    map.set_window(0, 64 * kGranularity);
    std::vector<bool> used(64);
    for (int round = 0; round < 5000; ++round) {
        const std::uint64_t first = random.below(64), count = 1 + random.below(8);
        const std::uint64_t address = first * kGranularity, size = count * kGranularity;
        bool is_free = first + count <= 64;
        for (std::uint64_t i = first; is_free && i < first + count; ++i) is_free = !used[i];
        ASSERT_EQ(map.check(address, size, kGranularity) == nullptr, is_free);
        CUmemGenericAllocationHandle handle = 0;
        if (is_free) {
            map.add(address, size, 1);
        } else if (map.remove(address, size, &handle)) {
            ASSERT_EQ(handle, 1u);
        } else {
            continue;
        }
        for (std::uint64_t i = first; i < first + count; ++i) used[i] = is_free;
    }
}

}  // namespace
}  // namespace weft::executor
