#include "swgpu/driver/device_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace weft::swdriver {
namespace {

constexpr int kDevice = 7;  // an arena that no other test of this program uses

TEST(DeviceMemory, counts_exactly) {
    DeviceMemory memory(kDevice, 1 << 20);
    const auto first = memory.allocate(1), second = memory.allocate(513);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(memory.free_bytes(), (1u << 20) - 512 - 1024);
    memory.release(*first);
    memory.release(*second);
    EXPECT_EQ(memory.free_bytes(), 1u << 20);
}

TEST(DeviceMemory, ends_at_its_total) {
    DeviceMemory memory(kDevice + 1, 1 << 20);
    EXPECT_FALSE(memory.allocate((1 << 20) + 1));
    EXPECT_FALSE(memory.allocate(0));
    const auto all = memory.allocate(1 << 20);
    ASSERT_TRUE(all);
    EXPECT_FALSE(memory.allocate(1));
    EXPECT_FALSE(memory.charge(1));
    memory.release(*all);
    EXPECT_TRUE(memory.charge(1 << 20));
    EXPECT_FALSE(memory.allocate(1));
    memory.refund(1 << 20);
}

TEST(DeviceMemory, fragmented_space_never_fails_what_fits) {
    DeviceMemory memory(kDevice + 2, 4 << 20);
    std::mt19937 random(3);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
    std::uint64_t used = 0;
    for (int step = 0; step < 20000; ++step) {
        const std::uint64_t size = 1 + random() % (64 << 10), rounded = (size + 511) / 512 * 512;
        if (random() % 2 == 0) {
            const auto address = memory.allocate(size);
            ASSERT_EQ(address.has_value(), used + rounded <= memory.total_bytes());
            if (!address) continue;
            std::memset(reinterpret_cast<void*>(*address), step & 0xff, size);
            held.emplace_back(*address, rounded);
            used += rounded;
        } else if (!held.empty()) {
            const std::size_t victim = random() % held.size();
            memory.release(held[victim].first);
            used -= held[victim].second;
            held[victim] = held.back();
            held.pop_back();
        }
        ASSERT_EQ(memory.free_bytes(), memory.total_bytes() - used);
    }
}

}  // namespace
}  // namespace weft::swdriver
