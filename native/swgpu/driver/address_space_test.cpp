#include "swgpu/driver/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace weft::swdriver {
namespace {

constexpr std::uint64_t kBase = 0x200000000000;

Allocation mapping(std::uint64_t start, std::uint64_t size) {
    return Allocation{.start = start, .size = size, .kind = MemoryKind::mapping, .readable = false, .writable = false};
}

TEST(AddressSpace, bounds_are_exact_to_the_byte) {
    AddressSpace space;
    ASSERT_TRUE(space.insert({.start = kBase, .size = 1001}));
    EXPECT_TRUE(space.accessible(kBase, 1001, true));
    EXPECT_TRUE(space.accessible(kBase + 1000, 1, true));
    EXPECT_FALSE(space.accessible(kBase + 1000, 2, true));
    EXPECT_FALSE(space.accessible(kBase - 1, 2, true));
    EXPECT_FALSE(space.accessible(kBase + 1001, 1, true));
    EXPECT_FALSE(space.accessible(kBase, ~std::uint64_t{0}, true)) << "an overflowing range";
}

TEST(AddressSpace, overlaps_are_refused) {
    AddressSpace space;
    ASSERT_TRUE(space.insert({.start = kBase + 100, .size = 100}));
    EXPECT_FALSE(space.insert({.start = kBase + 50, .size = 51}));
    EXPECT_FALSE(space.insert({.start = kBase + 199, .size = 1}));
    EXPECT_FALSE(space.insert({.start = kBase, .size = 1000}));
    EXPECT_FALSE(space.insert({.start = kBase, .size = 0}));
    EXPECT_TRUE(space.insert({.start = kBase + 50, .size = 50}));
    EXPECT_TRUE(space.insert({.start = kBase + 200, .size = 1}));
}

TEST(AddressSpace, neighbouring_allocations_are_not_one) {
    AddressSpace space;
    ASSERT_TRUE(space.insert({.start = kBase, .size = 512}));
    ASSERT_TRUE(space.insert({.start = kBase + 512, .size = 512}));
    EXPECT_FALSE(space.accessible(kBase + 500, 24, false));
}

TEST(AddressSpace, mappings_need_access_and_form_one_space) {
    AddressSpace space;
    ASSERT_TRUE(space.insert(mapping(kBase, 4096)));
    ASSERT_TRUE(space.insert(mapping(kBase + 4096, 4096)));
    EXPECT_FALSE(space.accessible(kBase, 8, false));
    EXPECT_FALSE(space.set_access(kBase, 4097, true, true)) << "not the whole of a mapping";
    EXPECT_TRUE(space.set_access(kBase, 8192, true, false));
    EXPECT_TRUE(space.accessible(kBase + 4000, 200, false));
    EXPECT_FALSE(space.accessible(kBase + 4000, 200, true)) << "read only";
}

TEST(AddressSpace, notes_narrow_what_is_accessible) {
    AddressSpace space;
    ASSERT_TRUE(space.insert(mapping(kBase, 4096)));
    ASSERT_TRUE(space.insert(mapping(kBase + 4096, 4096)));
    ASSERT_TRUE(space.set_access(kBase, 8192, true, true));
    ASSERT_TRUE(space.note(kBase + 4000, 500)) << "may span mappings";
    EXPECT_TRUE(space.accessible(kBase + 4000, 500, true));
    EXPECT_FALSE(space.accessible(kBase + 3999, 2, true));
    EXPECT_FALSE(space.accessible(kBase + 4499, 2, true));
    EXPECT_FALSE(space.note(kBase + 4499, 10)) << "overlaps";
    EXPECT_FALSE(space.note(kBase + 8000, 1000)) << "leaves the mappings";
    EXPECT_EQ(space.extent(kBase + 4100)->begin, kBase + 4000);
    EXPECT_EQ(space.extent(kBase + 4100)->end, kBase + 4500);
    const std::uint64_t epoch = space.epoch();
    ASSERT_TRUE(space.unnote(kBase + 4000));
    EXPECT_NE(space.epoch(), epoch);
    EXPECT_FALSE(space.accessible(kBase + 4000, 1, true)) << "the mappings stay narrowed";
    EXPECT_FALSE(space.unnote(kBase + 4000));
}

TEST(AddressSpace, notes_end_with_their_mapping) {
    AddressSpace space;
    ASSERT_TRUE(space.insert(mapping(kBase, 4096)));
    ASSERT_TRUE(space.set_access(kBase, 4096, true, true));
    ASSERT_TRUE(space.note(kBase + 256, 256));
    ASSERT_TRUE(space.remove(kBase));
    ASSERT_TRUE(space.insert(mapping(kBase, 4096)));
    ASSERT_TRUE(space.set_access(kBase, 4096, true, true));
    EXPECT_TRUE(space.accessible(kBase, 4096, true));
}

// Against a map with one entry per byte.
TEST(AddressSpace, agrees_with_a_simple_model) {
    std::mt19937 random(20);
    AddressSpace space;
    std::map<std::uint64_t, std::uint64_t> model;
    for (int step = 0; step < 20000; ++step) {
        const std::uint64_t start = kBase + random() % 2000, size = 1 + random() % 60;
        bool free = true;
        for (const auto& [other, bytes] : model) free = free && (start + size <= other || other + bytes <= start);
        switch (random() % 3) {
            case 0:
                ASSERT_EQ(space.insert({.start = start, .size = size}), free);
                if (free) model[start] = size;
                break;
            case 1: ASSERT_EQ(space.remove(start).has_value(), model.erase(start) == 1); break;
            default: {
                auto next = model.upper_bound(start);
                const bool inside =
                    next != model.begin() && start + size <= std::prev(next)->first + std::prev(next)->second;
                ASSERT_EQ(space.accessible(start, size, true), inside);
            }
        }
    }
}

}  // namespace
}  // namespace weft::swdriver
