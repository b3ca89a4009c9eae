#include <algorithm>

#include "fixture.h"

// Every direction, for sizes around the borders at which drivers change their ways.
class Copies : public ContextTest, public testing::WithParamInterface<size_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, Copies, testing::Values(1, 3, 4096, 8191, 8193, 65536, 65537, (1 << 20) + 1, 5 << 20),
                         testing::PrintToStringParamName());

TEST_P(Copies, there_and_back_pageable) {
    const auto values = pattern(GetParam(), 1);
    const CUdeviceptr address = allocate(GetParam());
    ASSERT_OK(cu.cuMemcpyHtoD_v2(address, values.data(), values.size()));
    EXPECT_EQ(read<std::uint8_t>(address, values.size()), values);
}

TEST_P(Copies, there_and_back_page_locked_and_asynchronous) {
    const auto values = pattern(GetParam(), 2);
    auto* from = pinned<std::uint8_t>(GetParam());
    auto* to = pinned<std::uint8_t>(GetParam());
    std::copy(values.begin(), values.end(), from);
    const CUdeviceptr address = allocate(GetParam());
    const CUstream own = stream();
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(address, from, values.size(), own));
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(to, address, values.size(), own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_TRUE(std::equal(values.begin(), values.end(), to));
    EXPECT_OK(cu.cuMemFreeHost(from));
    EXPECT_OK(cu.cuMemFreeHost(to));
}

TEST_P(Copies, asynchronous_pageable_sources_are_taken_at_the_call) {
    auto values = pattern(GetParam(), 3);
    const auto expected = values;
    const CUdeviceptr address = allocate(GetParam());
    const CUstream own = stream();
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(address, values.data(), values.size(), own));
    std::fill(values.begin(), values.end(), 0xff);
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint8_t>(address, expected.size()), expected);
}

TEST_P(Copies, asynchronous_to_pageable_memory) {
    const auto values = pattern(GetParam(), 4);
    const CUdeviceptr address = allocate(GetParam());
    write(address, values);
    std::vector<std::uint8_t> back(values.size());
    const CUstream own = stream();
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(back.data(), address, back.size(), own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(back, values);
}

TEST_P(Copies, within_the_device) {
    const auto values = pattern(GetParam(), 5);
    const CUdeviceptr from = allocate(GetParam()), to = allocate(GetParam());
    write(from, values);
    ASSERT_OK(cu.cuMemcpyDtoD_v2(to, from, values.size()));
    EXPECT_EQ(read<std::uint8_t>(to, values.size()), values);
    ASSERT_OK(cu.cuMemsetD8_v2(to, 0, values.size()));
    const CUstream own = stream(CU_STREAM_DEFAULT);
    ASSERT_OK(cu.cuMemcpyDtoDAsync_v2(to, from, values.size(), own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint8_t>(to, values.size()), values);
}

TEST_P(Copies, by_unified_addresses) {
    const auto values = pattern(GetParam(), 6);
    std::vector<std::uint8_t> back(values.size());
    const CUdeviceptr address = allocate(GetParam());
    ASSERT_OK(cu.cuMemcpy(address, reinterpret_cast<CUdeviceptr>(values.data()), values.size()));
    ASSERT_OK(cu.cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), address, back.size()));
    EXPECT_EQ(back, values);
}

class CopyRules : public ContextTest {};

TEST_F(CopyRules, nothing_is_copied_for_size_zero) {
    const CUdeviceptr address = allocate(16);
    std::uint32_t word = 5;
    EXPECT_OK(cu.cuMemcpyHtoD_v2(address, &word, 0));
    EXPECT_OK(cu.cuMemcpyDtoH_v2(&word, address, 0));
    EXPECT_EQ(word, 5u);
}

TEST_F(CopyRules, inner_addresses_work) {
    const auto values = pattern(1000, 7);
    const CUdeviceptr address = allocate(4096);
    ASSERT_OK(cu.cuMemcpyHtoD_v2(address + 777, values.data(), values.size()));
    EXPECT_EQ(read<std::uint8_t>(address + 777, 1000), values);
}

TEST_F(CopyRules, ranges_outside_of_allocations_are_refused) {
    std::vector<std::uint8_t> values(8 << 20);
    const CUdeviceptr address = allocate(1 << 20);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyHtoD_v2(0x10, values.data(), 16));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyHtoD_v2(0, values.data(), 16));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoH_v2(values.data(), address - (1ull << 36), 16));
    EXPECT_OK(cu.cuCtxSynchronize()) << "such errors are not sticky";
}

TEST_F(CopyRules, bounds_hold_to_the_byte) {
    SOFTWARE_GPU_ONLY();
    std::vector<std::uint8_t> values(2000);
    const CUdeviceptr address = allocate(1001);
    EXPECT_OK(cu.cuMemcpyHtoD_v2(address + 1000, values.data(), 1));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyHtoD_v2(address + 1000, values.data(), 2));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoH_v2(values.data(), address + 1001, 1));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8_v2(address, 0, 1002));
}

TEST_F(CopyRules, bad_streams_are_refused) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr address = allocate(16);
    std::uint32_t word = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE,
              cu.cuMemcpyHtoDAsync_v2(address, &word, 4, reinterpret_cast<CUstream>(0x123456)));
}

TEST_F(CopyRules, rectangles) {
    CUdeviceptr address = 0;
    size_t pitch = 0;
    ASSERT_OK(cu.cuMemAllocPitch_v2(&address, &pitch, 100, 20, 4));
    const auto values = pattern(100 * 20, 8);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = values.data();
    copy.srcPitch = 100;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 100;
    copy.Height = 20;
    ASSERT_OK(cu.cuMemcpy2D_v2(&copy));
    std::vector<std::uint8_t> back(50 * 10);
    CUDA_MEMCPY2D part{};
    part.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    part.srcDevice = address;
    part.srcPitch = pitch;
    part.srcXInBytes = 25;
    part.srcY = 5;
    part.dstMemoryType = CU_MEMORYTYPE_HOST;
    part.dstHost = back.data();
    part.dstPitch = 50;
    part.WidthInBytes = 50;
    part.Height = 10;
    ASSERT_OK(cu.cuMemcpy2D_v2(&part));
    for (size_t y = 0; y < 10; ++y) {
        for (size_t x = 0; x < 50; ++x) ASSERT_EQ(back[y * 50 + x], values[(y + 5) * 100 + x + 25]) << x << "," << y;
    }
}

TEST_F(CopyRules, boxes) {
    const CUdeviceptr address = allocate(10 * 20 * 30);
    const auto values = pattern(10 * 20 * 30, 9);
    write(address, values);
    std::vector<std::uint8_t> back(4 * 5 * 6);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address;
    copy.srcPitch = 10;
    copy.srcHeight = 20;
    copy.srcXInBytes = 3;
    copy.srcY = 7;
    copy.srcZ = 11;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = back.data();
    copy.dstPitch = 4;
    copy.dstHeight = 5;
    copy.WidthInBytes = 4;
    copy.Height = 5;
    copy.Depth = 6;
    ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    for (size_t z = 0; z < 6; ++z) {
        for (size_t y = 0; y < 5; ++y) {
            for (size_t x = 0; x < 4; ++x)
                ASSERT_EQ(back[(z * 5 + y) * 4 + x], values[((z + 11) * 20 + y + 7) * 10 + x + 3]);
        }
    }
}

TEST_F(CopyRules, fills_of_every_width) {
    const CUdeviceptr address = allocate(64);
    ASSERT_OK(cu.cuMemsetD8_v2(address, 0x11, 64));
    ASSERT_OK(cu.cuMemsetD16_v2(address + 8, 0x2233, 4));
    ASSERT_OK(cu.cuMemsetD32_v2(address + 32, 0x44556677, 2));
    ASSERT_OK(cu.cuCtxSynchronize());
    const auto bytes = read<std::uint8_t>(address, 64);
    EXPECT_EQ(bytes[7], 0x11);
    EXPECT_EQ(bytes[8], 0x33);
    EXPECT_EQ(bytes[15], 0x22);
    EXPECT_EQ(bytes[16], 0x11);
    EXPECT_EQ(bytes[32], 0x77);
    EXPECT_EQ(bytes[39], 0x44);
    EXPECT_EQ(bytes[40], 0x11);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD16_v2(address + 1, 0, 1)) << "not aligned";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD32_v2(address + 2, 0, 1));
}

TEST_F(CopyRules, fills_in_stream_order) {
    const CUstream own = stream();
    const CUdeviceptr address = allocate(4 << 20);
    for (unsigned value = 1; value <= 50; ++value) ASSERT_OK(cu.cuMemsetD32Async(address, value, 1 << 20, own));
    ASSERT_OK(cu.cuMemsetD8Async(address + 4, 9, 4, own));
    ASSERT_OK(cu.cuMemsetD16Async(address + 8, 0x0a0b, 2, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    const auto words = read<std::uint32_t>(address, 4);
    EXPECT_EQ(words, (std::vector<std::uint32_t>{50, 0x09090909, 0x0a0b0a0b, 50}));
    EXPECT_EQ(read<std::uint32_t>(address + (4 << 20) - 4, 1)[0], 50u);
}

TEST_F(CopyRules, rectangular_fills_leave_the_rest_alone) {
    const CUdeviceptr address = allocate(100 * 10);
    ASSERT_OK(cu.cuMemsetD8_v2(address, 1, 1000));
    ASSERT_OK(cu.cuMemsetD2D8_v2(address + 10, 100, 2, 30, 5));
    ASSERT_OK(cu.cuCtxSynchronize());
    const auto bytes = read<std::uint8_t>(address, 1000);
    EXPECT_EQ(bytes[9], 1);
    EXPECT_EQ(bytes[10], 2);
    EXPECT_EQ(bytes[39], 2);
    EXPECT_EQ(bytes[40], 1);
    EXPECT_EQ(bytes[410], 2);
    EXPECT_EQ(bytes[510], 1);
}

// A page-locked buffer that is written by the device and read again, with nobody waiting in between.
TEST_F(CopyRules, page_locked_sources_are_read_when_the_stream_gets_there) {
    constexpr size_t kSize = 3 << 20;
    auto* buffer = pinned<std::uint8_t>(kSize);
    const CUdeviceptr from = allocate(kSize), to = allocate(kSize);
    const auto values = pattern(kSize, 10);
    write(from, values);
    std::fill(buffer, buffer + kSize, 0);
    const CUstream own = stream();
    const CUfunction spin = kernel("spin");
    Spinner spinner(spin, own);
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(buffer, from, kSize, own));
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(to, buffer, kSize, own));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint8_t>(to, kSize), values);
}

TEST_F(CopyRules, pageable_sources_are_taken_at_the_call_even_behind_other_work) {
    const CUstream own = stream();
    const CUdeviceptr address = allocate(1000);
    auto values = pattern(1000, 11);
    const auto expected = values;
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(address, values.data(), values.size(), own));
    std::fill(values.begin(), values.end(), 0);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint8_t>(address, 1000), expected);
}
