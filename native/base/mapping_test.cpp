// Ring mappings wrap around without a seam; descriptors close once.
#include "base/mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Mapping, ring_continues_at_its_start) {
    auto file = make_memory_file("weft-test", 8192, false);
    ASSERT_TRUE(file);
    auto ring = Mapping::ring(file->get(), 0, 8192);
    ASSERT_TRUE(ring);
    EXPECT_EQ(ring->mapped_bytes(), 16384u);
    ring->data()[8192 + 5] = std::byte{42};
    EXPECT_EQ(ring->data()[5], std::byte{42});
}

TEST(UniqueFd, closes_once_and_keeps_errno) {
    auto file = make_memory_file("weft-test", 1, false);
    ASSERT_TRUE(file);
    int number = file->get();
    UniqueFd moved = std::move(*file);
    EXPECT_FALSE(*file);
    errno = 77;
    moved.reset();
    EXPECT_EQ(errno, 77);
    EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace weft
