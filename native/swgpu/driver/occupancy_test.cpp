#include "swgpu/driver/occupancy.h"

#include <gtest/gtest.h>

#include "swgpu/driver/driver.h"

namespace weft::swdriver {
namespace {

class OccupancyRules : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(initialize(0), CUDA_SUCCESS); }
    FunctionSettings settings;
    ptx::FunctionInfo info;
};

TEST_F(OccupancyRules, small_functions_are_limited_by_threads_and_blocks) {
    info.register_count = 16;
    EXPECT_EQ(active_blocks(info, settings, 1024, 0), 2);
    EXPECT_EQ(active_blocks(info, settings, 256, 0), 8);
    EXPECT_EQ(active_blocks(info, settings, 32, 0), 32);
}

TEST_F(OccupancyRules, registers_limit) {
    info.register_count = 200;
    info.max_threads = 256;
    EXPECT_EQ(active_blocks(info, settings, 256, 0), 1);
    EXPECT_EQ(active_blocks(info, settings, 128, 0), 2);
}

TEST_F(OccupancyRules, shared_memory_limits) {
    info.register_count = 16;
    EXPECT_EQ(active_blocks(info, settings, 64, 40 * 1024), 4);
    info.static_shared_bytes = 16 * 1024;
    EXPECT_EQ(active_blocks(info, settings, 64, 0), 9);
    EXPECT_EQ(available_shared(info, settings, 4), 24576u);
}

TEST_F(OccupancyRules, impossible_blocks_have_none) {
    info.register_count = 16;
    info.max_threads = 64;
    EXPECT_EQ(active_blocks(info, settings, 65, 0), 0);
    EXPECT_EQ(active_blocks(info, settings, 64, 100 * 1024), 0) << "not without a request";
    settings.max_dynamic_shared = 100 * 1024;
    EXPECT_EQ(active_blocks(info, settings, 64, 100 * 1024), 1);
}

// A kernel of 1024 threads can always be launched, whatever the estimate of its registers is.
TEST_F(OccupancyRules, reported_registers_fit_the_largest_block) {
    info.register_count = 255;
    EXPECT_LE(registers(info) * 1024, 65536);
    EXPECT_GE(active_blocks(info, settings, 1024, 0), 1);
    info.max_threads = 128;
    EXPECT_EQ(registers(info), 255);
}

}  // namespace
}  // namespace weft::swdriver
