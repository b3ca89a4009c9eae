#include "shim/page_states.h"

#include <gtest/gtest.h>

namespace weft::shim {
namespace {

constexpr std::uint64_t kPage = PageStates::kPageBytes;

std::vector<std::pair<std::size_t, std::size_t>> written_runs(PageStates& pages) {
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    pages.for_each_written([&](const PageRun& run) {
        runs.emplace_back(run.first, run.count);
        return 0;
    });
    return runs;
}

TEST(PageStates, OnlyWrittenPagesAreOffered) {
    PageStates pages(100 * kPage);
    EXPECT_TRUE(pages.has_current());
    EXPECT_FALSE(pages.has_written());
    pages.set_written({3, 2});
    pages.set_written({4, 3});
    pages.set_written({50, 1});
    using Runs = std::vector<std::pair<std::size_t, std::size_t>>;
    EXPECT_EQ(written_runs(pages), (Runs{{3, 4}, {50, 1}}));
    pages.all_away();
    EXPECT_FALSE(pages.has_current());
    EXPECT_EQ(written_runs(pages), Runs{});
    pages.set_current({7, 1});
    EXPECT_TRUE(pages.is_current(7));
    EXPECT_FALSE(pages.is_written(7));
    EXPECT_FALSE(pages.is_current(8));
}

TEST(PageStates, GoingStraightOnBringsMoreAtOnceAndJumpingOnePage) {
    PageStates pages(10000 * kPage);
    pages.all_away();
    std::size_t page = 100, faults = 0;
    while (page < 9000) {
        const PageRun run = pages.around_fault(page);
        pages.set_current(run);
        EXPECT_EQ(run.first, page);
        EXPECT_LE(run.count, PageStates::kMaxPagesAtOnce);
        page += run.count;
        ++faults;
    }
    EXPECT_LT(faults, 25u);
    EXPECT_EQ(pages.around_fault(20).count, 1u);
    EXPECT_EQ(pages.around_fault(50).count, 1u);
}

TEST(PageStates, PagesThatAreHereAreNotBroughtAgain) {
    PageStates pages(64 * kPage);
    pages.all_away();
    pages.set_written({5, 1});
    for (std::size_t page : {0, 1}) pages.set_current(pages.around_fault(page));
    const PageRun run = pages.around_fault(3);
    pages.set_current(run);
    EXPECT_EQ(run.first + run.count, 5u) << "up to the page that was written here";
    std::size_t away = 0;
    pages.for_each_away({0, 10}, [&](const PageRun& one) {
        away += one.count;
        return 0;
    });
    EXPECT_EQ(away, 4u);
}

}  // namespace
}  // namespace weft::shim
