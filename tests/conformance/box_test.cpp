#include <algorithm>

#include "fixture.h"

// Copies of rectangles and boxes, in all combinations of memory and for sizes around the borders at which they change
// their ways: one row, whole rows, padded rows, more than a megabyte.
namespace {

struct Shape {
    size_t width, height, depth, pitch, plane_rows;
    size_t span() const { return ((depth - 1) * plane_rows + height - 1) * pitch + width; }
};

// How the host side is made.
enum class Host { pageable, page_locked };

}  // namespace

class Boxes : public ContextTest, public testing::WithParamInterface<Shape> {
  protected:
    // A copy of the whole shape between two sides that are laid out alike.
    CUDA_MEMCPY3D whole() const {
        const Shape& shape = GetParam();
        CUDA_MEMCPY3D copy{};
        copy.srcPitch = copy.dstPitch = shape.pitch;
        copy.srcHeight = copy.dstHeight = shape.plane_rows;
        copy.WidthInBytes = shape.width;
        copy.Height = shape.height;
        copy.Depth = shape.depth;
        return copy;
    }
    bool is_inside(size_t i) const {
        const Shape& shape = GetParam();
        return i % shape.pitch < shape.width && i / shape.pitch % shape.plane_rows < shape.height;
    }
    // Inside the box the bytes of `values`, elsewhere `rest`.
    void expect_box(const std::uint8_t* found, const std::vector<std::uint8_t>& values, std::uint8_t rest) const {
        for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(found[i], is_inside(i) ? values[i] : rest) << "byte " << i;
    }
    void to_device(CUdeviceptr to, const void* from, CUstream on) {
        CUDA_MEMCPY3D copy = whole();
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = from;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = to;
        ASSERT_OK(cu.cuMemcpy3DAsync_v2(&copy, on));
    }
    void to_host(void* to, CUdeviceptr from, CUstream on) {
        CUDA_MEMCPY3D copy = whole();
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = from;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = to;
        ASSERT_OK(cu.cuMemcpy3DAsync_v2(&copy, on));
    }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Boxes,
                         testing::Values(Shape{1, 1, 1, 1, 1}, Shape{100, 7, 1, 128, 7}, Shape{100, 7, 3, 128, 9},
                                         Shape{64, 8, 4, 64, 8}, Shape{4099, 5, 1, 4352, 5},
                                         Shape{1000, 500, 2, 1024, 501}, Shape{3 << 20, 2, 1, (3 << 20) + 512, 2},
                                         Shape{3, 1000, 10, 512, 1001}),
                         [](const auto& info) {
                             const Shape& s = info.param;
                             return std::to_string(s.width) + "x" + std::to_string(s.height) + "x" +
                                    std::to_string(s.depth) + "in" + std::to_string(s.pitch);
                         });

TEST_P(Boxes, from_and_to_pageable_memory) {
    const size_t span = GetParam().span();
    auto values = pattern(span, 1);
    const auto expected = values;
    const CUdeviceptr memory = allocate(span);
    ASSERT_OK(cu.cuMemsetD8_v2(memory, 0xee, span));
    const CUstream own = stream(CU_STREAM_DEFAULT);
    to_device(memory, values.data(), own);
    std::fill(values.begin(), values.end(), 0);  // taken at the call
    ASSERT_OK(cu.cuStreamSynchronize(own));
    expect_box(read<std::uint8_t>(memory, span).data(), expected, 0xee);
    to_host(values.data(), memory, own);
    ASSERT_OK(cu.cuStreamSynchronize(own));
    expect_box(values.data(), expected, 0);
}

TEST_P(Boxes, from_and_to_page_locked_memory_behind_other_work) {
    const size_t span = GetParam().span();
    const auto values = pattern(span, 2);
    auto* from = pinned<std::uint8_t>(span);
    auto* to = pinned<std::uint8_t>(span);
    std::fill(from, from + span, 0);
    std::fill(to, to + span, 0x77);
    const CUdeviceptr source = allocate(span), memory = allocate(span);
    write(source, values);
    ASSERT_OK(cu.cuMemsetD8_v2(memory, 0xee, span));
    const CUstream own = stream();
    Spinner spinner(kernel("spin"), own);
    // The buffer is filled by the device, read again, and the result comes back, with nobody waiting in between.
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(from, source, span, own));
    to_device(memory, from, own);
    to_host(to, memory, own);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    expect_box(to, values, 0x77);
    EXPECT_OK(cu.cuMemFreeHost(from));
    EXPECT_OK(cu.cuMemFreeHost(to));
}

TEST_P(Boxes, within_the_device_and_on_the_host) {
    const size_t span = GetParam().span();
    const auto values = pattern(span, 3);
    const CUdeviceptr from = allocate(span), to = allocate(span);
    write(from, values);
    ASSERT_OK(cu.cuMemsetD8_v2(to, 0xee, span));
    CUDA_MEMCPY3D copy = whole();
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    expect_box(read<std::uint8_t>(to, span).data(), values, 0xee);
    std::vector<std::uint8_t> back(span, 0x11);
    copy = whole();
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = values.data();
    copy.dstHost = back.data();
    ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    expect_box(back.data(), values, 0x11);
}

TEST_P(Boxes, by_unified_addresses) {
    const size_t span = GetParam().span();
    const auto values = pattern(span, 4);
    const CUdeviceptr memory = allocate(span);
    CUDA_MEMCPY3D copy = whole();
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(values.data());
    copy.dstDevice = memory;
    ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    std::vector<std::uint8_t> back(span, 0x22);
    copy.srcDevice = memory;
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(back.data());
    ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    expect_box(back.data(), values, 0x22);
}

class BoxRules : public ContextTest {};

TEST_F(BoxRules, rectangles_start_inside_of_both_sides) {
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    ASSERT_OK(cu.cuMemAllocPitch_v2(&memory, &pitch, 300, 40, 16));
    ASSERT_OK(cu.cuMemsetD2D8_v2(memory, pitch, 0x33, 300, 40));
    const auto values = pattern(100 * 20, 5);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = values.data();
    copy.srcPitch = 100;
    copy.srcXInBytes = 10;
    copy.srcY = 5;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = pitch;
    copy.dstXInBytes = 200;
    copy.dstY = 30;
    copy.WidthInBytes = 50;
    copy.Height = 10;
    const CUstream own = stream(CU_STREAM_DEFAULT);
    ASSERT_OK(cu.cuMemcpy2DAsync_v2(&copy, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    const auto found = read<std::uint8_t>(memory, pitch * 40);
    for (size_t y = 0; y < 40; ++y) {
        for (size_t x = 0; x < 300; ++x) {
            const bool inside = x >= 200 && x < 250 && y >= 30;
            ASSERT_EQ(found[y * pitch + x], inside ? values[(y - 25) * 100 + x - 190] : 0x33) << x << "," << y;
        }
    }
    std::vector<std::uint8_t> back(50 * 10);
    CUDA_MEMCPY2D away{};
    away.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    away.srcDevice = memory;
    away.srcPitch = pitch;
    away.srcXInBytes = 200;
    away.srcY = 30;
    away.dstMemoryType = CU_MEMORYTYPE_HOST;
    away.dstHost = back.data();
    away.WidthInBytes = 50;
    away.Height = 10;
    away.dstPitch = 50;
    ASSERT_OK(cu.cuMemcpy2DUnaligned_v2(&away));
    EXPECT_EQ(back[50 * 9 + 49], values[14 * 100 + 59]);
}

TEST_F(BoxRules, what_cannot_be_is_refused) {
    std::vector<std::uint8_t> host(4096);
    const CUdeviceptr memory = allocate(4096);
    const auto copy_of = [&](size_t width, size_t height, size_t pitch) {
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host.data();
        copy.srcPitch = pitch;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = memory;
        copy.dstPitch = pitch;
        copy.WidthInBytes = width;
        copy.Height = height;
        return cu.cuMemcpy2D_v2(&copy);
    };
    EXPECT_OK(copy_of(64, 64, 64));
    EXPECT_OK(copy_of(0, 64, 64)) << "nothing to copy";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy_of(64, 2, 63)) << "rows overlap";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy2D_v2(nullptr));
    CUDA_MEMCPY3D box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = box.dstDevice = memory;
    box.WidthInBytes = box.Height = box.Depth = 1;
    box.srcLOD = 1;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy3D_v2(&box));
    EXPECT_OK(cu.cuCtxSynchronize()) << "such errors are not sticky";
}

TEST_F(BoxRules, bounds_are_those_of_the_allocation) {
    SOFTWARE_GPU_ONLY();
    std::vector<std::uint8_t> host(8192);
    const CUdeviceptr memory = allocate(1000);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host.data();
    copy.srcPitch = copy.dstPitch = 100;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.WidthInBytes = 100;
    copy.Height = 10;
    EXPECT_OK(cu.cuMemcpy2D_v2(&copy));
    copy.dstXInBytes = 1;
    copy.dstPitch = 101;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));
    copy.dstXInBytes = 0;
    copy.dstPitch = SIZE_MAX / 2;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy2D_v2(&copy)) << "no arithmetic wraps around";
    copy.dstPitch = 100;
    copy.Height = SIZE_MAX / 50;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));
}

TEST_F(BoxRules, rectangular_fills_of_every_width_in_stream_order) {
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    ASSERT_OK(cu.cuMemAllocPitch_v2(&memory, &pitch, 400, 10, 4));
    const CUstream own = stream();
    ASSERT_OK(cu.cuMemsetD8Async(memory, 0, pitch * 10, own));
    ASSERT_OK(cu.cuMemsetD2D8Async(memory + 1, pitch, 0x12, 3, 10, own));
    ASSERT_OK(cu.cuMemsetD2D16Async(memory + 4, pitch, 0x3456, 2, 9, own));
    ASSERT_OK(cu.cuMemsetD2D32Async(memory + 8, pitch, 0x789abcde, 2, 8, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    const auto found = read<std::uint8_t>(memory, pitch * 10);
    EXPECT_EQ(found[0], 0);
    EXPECT_EQ(found[pitch * 9 + 3], 0x12);
    EXPECT_EQ(found[pitch * 8 + 6], 0x56);
    EXPECT_EQ(found[pitch * 9 + 4], 0);
    EXPECT_EQ(found[pitch * 7 + 15], 0x78);
    EXPECT_EQ(found[pitch * 8 + 8], 0);
    EXPECT_EQ(found[pitch * 7 + 16], 0);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD2D32Async(memory, 7, 1, 2, 2, own)) << "rows overlap";
}
