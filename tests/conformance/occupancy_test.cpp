#include "fixture.h"

class Occupancy : public ContextTest {};

TEST_F(Occupancy, falls_with_the_size_of_a_block) {
    int previous = 1 << 20;
    for (int size = 32; size <= 1024; size *= 2) {
        int blocks = 0;
        ASSERT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("step"), size, 0));
        EXPECT_GE(blocks, 1);
        EXPECT_LE(blocks, previous);
        EXPECT_LE(blocks * size, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
        previous = blocks;
    }
}

TEST_F(Occupancy, falls_with_shared_memory) {
    int without = 0, with = 0;
    ASSERT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&without, kernel("reverse"), 64, 0));
    ASSERT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with, kernel("reverse"), 64, 40 * 1024, 0));
    EXPECT_LT(with, without);
    EXPECT_GE(with, 1);
}

TEST_F(Occupancy, suggests_blocks_that_can_be_launched) {
    int grid = 0, block = 0;
    ASSERT_OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("step"), nullptr, 0, 0));
    EXPECT_GE(block, 32);
    EXPECT_LE(block, 1024);
    EXPECT_GE(grid, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    ASSERT_OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("step"), nullptr, 0, 128));
    EXPECT_LE(block, 128);
    ASSERT_OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("small_blocks"), nullptr, 0, 0));
    EXPECT_LE(block, 64);
}

TEST_F(Occupancy, tells_how_much_shared_memory_is_left) {
    SKIP_WITHOUT(cuOccupancyAvailableDynamicSMemPerBlock);
    size_t one = 0, eight = 0;
    ASSERT_OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel("reverse"), 1, 128));
    ASSERT_OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&eight, kernel("reverse"), 8, 128));
    EXPECT_GT(eight, 0u);
    EXPECT_LE(eight, one);
}

TEST_F(Occupancy, bad_arguments_are_refused) {
    int blocks = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("step"), 0, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kernel("step"), 32, 0));
}
