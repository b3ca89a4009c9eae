#include "cudart/pointer_map.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft::cudart {
namespace {

TEST(PointerMap, FindsWhatWasInserted) {
    PointerMap<int> map;
    std::vector<int> values(1000);
    EXPECT_EQ(nullptr, map.find(&values[0]));
    for (int& value : values) map.insert(&value, &value);
    for (int& value : values) EXPECT_EQ(&value, map.find(&value));
    EXPECT_EQ(nullptr, map.find(&map));
    EXPECT_EQ(nullptr, map.find(nullptr));
}

TEST(PointerMap, RemovedKeysAreGoneAndMayComeBack) {
    PointerMap<int> map;
    std::vector<int> values(200);
    for (int& value : values) map.insert(&value, &value);
    for (std::size_t i = 0; i < values.size(); i += 2) map.remove(&values[i]);
    map.remove(&map);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(i % 2 == 0 ? nullptr : &values[i], map.find(&values[i]));
    map.insert(&values[0], &values[1]);
    EXPECT_EQ(&values[1], map.find(&values[0]));
}

TEST(PointerMap, ReadersRunBesideAWriter) {
    PointerMap<int> map;
    std::vector<int> values(5000);
    map.insert(&values[0], &values[0]);
    std::thread reader([&] {
        for (int round = 0; round < 20'000; ++round) ASSERT_EQ(&values[0], map.find(&values[0]));
    });
    for (int& value : values) map.insert(&value, &value);
    reader.join();
    for (int& value : values) EXPECT_EQ(&value, map.find(&value));
}

}  // namespace
}  // namespace weft::cudart
