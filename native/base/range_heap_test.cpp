// No range is handed out twice, nothing is lost, neighbours join again: checked after every random step.
#include "base/range_heap.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weft {
namespace {

TEST(RangeHeap, RoundsAndAlignsRanges) {
    RangeHeap heap(512);
    heap.add(4096, 4096);
    EXPECT_EQ(heap.allocate(1), 4096u);
    EXPECT_EQ(heap.allocate(513), 4608u);
    EXPECT_EQ(heap.used_bytes(), 512u + 1024u);
    EXPECT_EQ(heap.find(4096)->size, 1u);
    EXPECT_FALSE(heap.find(4097));  // past the end of what was asked for
    EXPECT_EQ(heap.find(4608 + 512)->address, 4608u);
}

TEST(RangeHeap, TakesTheSmallestPieceThatFits) {
    RangeHeap heap(512);
    heap.add(0, 4096);
    heap.add(65536, 1024);
    EXPECT_EQ(heap.allocate(1024), 65536u);
}

TEST(RangeHeap, JoinsNeighboursAgain) {
    RangeHeap heap(512);
    heap.add(0, 2048);
    heap.add(2048, 2048);
    const auto all = heap.allocate(4096);
    ASSERT_TRUE(all);
    heap.release(*all, *heap.detach(*all));
    EXPECT_TRUE(heap.is_free(0, 4096));
    EXPECT_EQ(heap.free_tail(4096), 4096u);
}

TEST(RangeHeap, RemovesOnlyWhatIsFree) {
    RangeHeap heap(512);
    heap.add(0, 4096);
    const auto taken = heap.allocate(512);
    EXPECT_FALSE(heap.remove(0, 4096));
    EXPECT_TRUE(heap.remove(2048, 1024));
    EXPECT_FALSE(heap.is_free(2048, 1));
    heap.release(*taken, *heap.detach(*taken));
    EXPECT_EQ(heap.free_bytes(), 3072u);
    EXPECT_TRUE(heap.check_invariants());
}

TEST(RangeHeap, KeepsItsPromisesUnderRandomUse) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        RangeHeap heap(512);
        constexpr std::uint64_t kSize = 1 << 20;
        heap.add(kSize, kSize);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
        for (int step = 0; step < 400; ++step) {
            if (live.empty() || random() % 3 != 0) {
                const std::uint64_t size = 1 + random() % 20000;
                const auto address = heap.allocate(size);
                if (!address) continue;
                for (const auto& [other, length] : live)
                    ASSERT_TRUE(*address + size <= other || other + length <= *address);
                ASSERT_GE(*address, kSize);
                ASSERT_LE(*address + size, 2 * kSize);
                live.emplace_back(*address, size);
            } else {
                const std::size_t at = random() % live.size();
                const auto size = heap.detach(live[at].first);
                ASSERT_TRUE(size);
                heap.release(live[at].first, *size);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            }
            ASSERT_TRUE(heap.check_invariants());
            ASSERT_EQ(heap.used_bytes() + heap.free_bytes(), kSize);
        }
    }
}

TEST(RangeHeap, WiderAlignmentsLeaveTheSkippedSpaceFree) {
    RangeHeap heap(512);
    heap.add(1 << 20, 64 << 10);
    const auto small = heap.allocate(512);
    const auto page = heap.allocate(5000, 4096);
    ASSERT_TRUE(small && page);
    EXPECT_EQ(*page, (1u << 20) + 4096);
    EXPECT_EQ(heap.free_bytes(), (64u << 10) - 512 - 5120);
    EXPECT_EQ(heap.allocate(3584), (1u << 20) + 512) << "what was skipped";
    EXPECT_TRUE(heap.check_invariants());
    EXPECT_FALSE(heap.allocate(60 << 10, 4096));
    heap.release(*page, *heap.detach(*page));
    EXPECT_TRUE(heap.check_invariants());
}

TEST(RangeHeap, DetachedRangesCanBeLiveAgain) {
    RangeHeap heap(512);
    heap.add(1 << 20, 8 << 10);
    const auto first = heap.allocate(1000);
    ASSERT_TRUE(first);
    const auto detached = heap.detach(*first);
    EXPECT_FALSE(heap.find(*first));
    heap.attach(*first, 1000);
    EXPECT_EQ(heap.find(*first + 999)->size, 1000u);
    EXPECT_EQ(heap.used_bytes(), *detached);
    EXPECT_TRUE(heap.check_invariants());
}

}  // namespace
}  // namespace weft
