#include "shim/reserved_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace weft::shim {
namespace {

std::uint64_t free_address(std::size_t size) {
    void* found = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ::munmap(found, size);
    return reinterpret_cast<std::uint64_t>(found);
}

bool is_taken(std::uint64_t address) {
    void* wanted = reinterpret_cast<void*>(address);
    void* got = ::mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED) ::munmap(got, 4096);
    return got != wanted;
}

TEST(ReservedPages, TwoHoldersMayShareAPage) {
    const std::uint64_t at = free_address(16384);
    ReservedPages pages;
    ASSERT_TRUE(pages.acquire(at + 100, 100));
    ASSERT_TRUE(pages.acquire(at + 300, 8000));
    pages.release(at + 100, 100);
    EXPECT_TRUE(is_taken(at));
    pages.release(at + 300, 8000);
    EXPECT_FALSE(is_taken(at));
    EXPECT_EQ(pages.page_count(), 0u);
}

TEST(ReservedPages, MemoryOfTheProcessIsNeverTakenAndNothingIsLeftBehind) {
    void* own = ::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto at = reinterpret_cast<std::uint64_t>(own);
    ::munmap(own, 4096);  // the first page is free, the second is not
    ReservedPages pages;
    EXPECT_FALSE(pages.acquire(at, 8192));
    EXPECT_EQ(pages.page_count(), 0u);
    *reinterpret_cast<char*>(at + 4096) = 1;  // still ours
    ::munmap(reinterpret_cast<void*>(at + 4096), 8192);
}

}  // namespace
}  // namespace weft::shim
