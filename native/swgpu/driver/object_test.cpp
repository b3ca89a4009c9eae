#include "swgpu/driver/object.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

namespace weft::swdriver {
namespace {

struct Thing final : Object {
    static constexpr Kind kKind = Kind::event;
    explicit Thing(int* alive) : Object(kKind), alive_(alive) { ++*alive_; }
    ~Thing() override { --*alive_; }
    int* alive_;
};

struct Other final : Object {
    static constexpr Kind kKind = Kind::stream;
    Other() : Object(kKind) {}
};

TEST(Handles, find_what_was_inserted_and_nothing_else) {
    int alive = 0;
    Ref<Thing> thing(new Thing(&alive));
    const std::uint64_t handle = HandleTable::instance().insert(thing.get());
    EXPECT_EQ(find<Thing>(reinterpret_cast<void*>(handle)).get(), thing.get());
    EXPECT_FALSE(find<Other>(reinterpret_cast<void*>(handle))) << "another kind";
    EXPECT_GT(static_cast<std::int64_t>(handle), 0);
    HandleTable::instance().remove<Thing>(reinterpret_cast<void*>(handle));
    EXPECT_FALSE(find<Thing>(reinterpret_cast<void*>(handle)));
    EXPECT_FALSE(HandleTable::instance().remove<Thing>(reinterpret_cast<void*>(handle)));
    EXPECT_EQ(alive, 1);
    thing = {};
    EXPECT_EQ(alive, 0);
}

TEST(Handles, a_stale_handle_never_finds_a_newcomer) {
    int alive = 0;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) {
        Ref<Thing> thing(new Thing(&alive));
        const std::uint64_t handle = HandleTable::instance().insert(thing.get());
        EXPECT_TRUE(seen.insert(handle).second);
        HandleTable::instance().remove<Thing>(reinterpret_cast<void*>(handle));
    }
    for (const std::uint64_t handle : seen) EXPECT_FALSE(find<Thing>(reinterpret_cast<void*>(handle)));
    EXPECT_EQ(alive, 0);
}

TEST(Handles, random_words_are_refused) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; ++i) EXPECT_FALSE(find<Thing>(reinterpret_cast<void*>(random())));
    for (std::uint64_t small = 0; small < 10; ++small) EXPECT_FALSE(find<Thing>(reinterpret_cast<void*>(small)));
}

TEST(Handles, threads_insert_find_and_remove) {
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([] {
            for (int i = 0; i < 5000; ++i) {
                Ref<Other> object(new Other);
                const auto handle = reinterpret_cast<void*>(HandleTable::instance().insert(object.get()));
                EXPECT_EQ(find<Other>(handle).get(), object.get());
                EXPECT_TRUE(HandleTable::instance().remove<Other>(handle));
            }
        });
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft::swdriver
