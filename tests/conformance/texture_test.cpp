#include <cmath>
#include <cstring>

#include "fixture.h"

// CUDA arrays, and what kernels read through textures and write through surfaces. Expected values follow the appendix
// on texture fetching of the CUDA programming guide.
namespace {

// out[i] = the texel at coordinates[2 i], coordinates[2 i + 1], four words each.
const char kTextures[] = R"(
.version 7.0
.target sm_50
.address_size 64

.visible .entry fetch2d(.param .u64 tex, .param .u64 out, .param .u64 at) {
    .reg .b32 %r<6>; .reg .f32 %f<7>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 8; add.u64 %rd5, %rd3, %rd4;
    ld.global.v2.f32 {%f1, %f2}, [%rd5];
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd2, %rd6;
    st.global.v4.f32 [%rd7], {%f3, %f4, %f5, %f6};
    ret;
}
.visible .entry fetch2d_words(.param .u64 tex, .param .u64 out, .param .u64 at) {
    .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 8; add.u64 %rd5, %rd3, %rd4;
    ld.global.v2.f32 {%f1, %f2}, [%rd5];
    tex.2d.v4.u32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%f1, %f2}];
    mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd2, %rd6;
    st.global.v4.u32 [%rd7], {%r2, %r3, %r4, %r5};
    ret;
}
.visible .entry gather2d(.param .u64 tex, .param .u64 out, .param .u64 at) {
    .reg .b32 %r<6>; .reg .f32 %f<7>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 8; add.u64 %rd5, %rd3, %rd4;
    ld.global.v2.f32 {%f1, %f2}, [%rd5];
    tld4.r.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd2, %rd6;
    st.global.v4.f32 [%rd7], {%f3, %f4, %f5, %f6};
    ret;
}
// out[i] = the texel number i - 2 of linear memory
.visible .entry fetch_linear(.param .u64 tex, .param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; sub.u32 %r2, %r1, 2;
    tex.1d.v4.s32.s32 {%r3, %r4, %r5, %r6}, [%rd1, {%r2}];
    mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r3;
    ret;
}
// out[z][y][x] = the texel there, of three dimensions; of layers if it has them
.visible .entry fetch3d(.param .u64 tex, .param .u64 out) {
    .reg .b32 %r<14>; .reg .f32 %f<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; cvt.rn.f32.u32 %f3, %r3;
    add.f32 %f1, %f1, 0f3F000000; add.f32 %f2, %f2, 0f3F000000; add.f32 %f3, %f3, 0f3F000000;
    tex.3d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2, %f3, %f3}];
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r7, %r6, %r4, %r1;
    mul.wide.u32 %rd3, %r7, 4; add.u64 %rd4, %rd2, %rd3;
    st.global.f32 [%rd4], %f4;
    ret;
}
.visible .entry fetch_layers(.param .u64 tex, .param .u64 out) {
    .reg .b32 %r<14>; .reg .f32 %f<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2;
    add.f32 %f1, %f1, 0f3F000000; add.f32 %f2, %f2, 0f3F000000;
    tex.a2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%r3, %f1, %f2, %f2}];
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r7, %r6, %r4, %r1;
    mul.wide.u32 %rd3, %r7, 4; add.u64 %rd4, %rd2, %rd3;
    st.global.f32 [%rd4], %f4;
    ret;
}
// surface[y][x] = surface[y][x] * 2 + x, of words
.visible .entry change_surface(.param .u64 surf) {
    .reg .b32 %r<8>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [surf];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r1, 2;
    suld.b.2d.b32.trap {%r4}, [%rd1, {%r3, %r2}];
    mad.lo.u32 %r5, %r4, 2, %r1;
    sust.b.2d.b32.trap [%rd1, {%r3, %r2}], {%r5};
    ret;
}
// out[0] = what lies outside by each rule: .zero, .clamp; then writes outside by .zero, .clamp
.visible .entry outside_surface(.param .u64 surf, .param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [surf]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, 4000; mov.u32 %r2, 0; mov.u32 %r3, 77;
    suld.b.2d.b32.zero {%r4}, [%rd1, {%r1, %r2}];
    suld.b.2d.b32.clamp {%r5}, [%rd1, {%r1, %r2}];
    st.global.v2.u32 [%rd2], {%r4, %r5};
    sust.b.2d.b32.zero [%rd1, {%r1, %r2}], {%r3};
    sust.b.2d.b32.clamp [%rd1, {%r1, %r2}], {%r3};
    ret;
}
.visible .entry size_of(.param .u64 tex, .param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [tex]; ld.param.u64 %rd2, [out];
    txq.width.b32 %r1, [%rd1];
    txq.height.b32 %r2, [%rd1];
    st.global.v2.u32 [%rd2], {%r1, %r2};
    ret;
}
)";

constexpr unsigned kWidth = 8, kHeight = 4;

struct Point {
    float x, y;
};
struct Four {
    float x, y, z, w;
};

float value_at(unsigned x, unsigned y) { return static_cast<float>(y * 100 + x); }

}  // namespace

class Textures : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        SKIP_WITHOUT(cuTexObjectCreate);
        SKIP_IF_UNSUPPORTED(cu.cuModuleLoadData(&textures, kTextures));
    }
    CUfunction function(const char* name) {
        CUfunction found = nullptr;
        EXPECT_OK(cu.cuModuleGetFunction(&found, textures, name));
        return found;
    }
    CUarray array(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                  unsigned flags = 0) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, depth, format, channels, flags};
        CUarray made = nullptr;
        EXPECT_OK(cu.cuArray3DCreate_v2(&made, &descriptor));
        return made;
    }
    template <typename T>
    void fill(CUarray to, const std::vector<T>& values, size_t row_bytes, size_t height, size_t depth = 1) {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = values.data();
        copy.srcPitch = row_bytes;
        copy.srcHeight = height;
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = to;
        copy.WidthInBytes = row_bytes;
        copy.Height = height;
        copy.Depth = depth;
        ASSERT_OK(cu.cuMemcpy3D_v2(&copy));
    }
    // The array of kWidth x kHeight floats whose values tell their place.
    CUarray places() {
        const CUarray made = array(kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1);
        std::vector<float> values;
        for (unsigned y = 0; y < kHeight; ++y)
            for (unsigned x = 0; x < kWidth; ++x) values.push_back(value_at(x, y));
        fill(made, values, kWidth * 4, kHeight);
        return made;
    }
    CUtexObject texture(CUarray of, CUaddress_mode mode, CUfilter_mode filter, unsigned flags = 0) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = of;
        return texture(resource, mode, filter, flags);
    }
    CUtexObject texture(const CUDA_RESOURCE_DESC& resource, CUaddress_mode mode, CUfilter_mode filter, unsigned flags) {
        CUDA_TEXTURE_DESC description{};
        description.addressMode[0] = description.addressMode[1] = description.addressMode[2] = mode;
        description.filterMode = filter;
        description.flags = flags;
        CUtexObject made = 0;
        EXPECT_OK(cu.cuTexObjectCreate(&made, &resource, &description, nullptr));
        return made;
    }
    template <typename T = Four>
    std::vector<T> fetch(const char* name, CUtexObject from, const std::vector<Point>& points) {
        const CUdeviceptr at = allocate(points.size() * sizeof(Point)), out = allocate(points.size() * sizeof(Four));
        write(at, points);
        EXPECT_OK(launch(function(name), 1, static_cast<unsigned>(points.size()), nullptr, from, out, at));
        return read<T>(out, points.size());
    }
    CUmodule textures = nullptr;
};

TEST_F(Textures, arrays_keep_what_is_copied_to_them) {
    CUarray made = array(100, 50, 3, CU_AD_FORMAT_UNSIGNED_INT16, 2);
    CUDA_ARRAY3D_DESCRIPTOR found{};
    ASSERT_OK(cu.cuArray3DGetDescriptor_v2(&found, made));
    EXPECT_EQ(found.Width, 100u);
    EXPECT_EQ(found.Depth, 3u);
    EXPECT_EQ(found.NumChannels, 2u);
    const auto values = pattern(400 * 50 * 3, 1);
    fill(made, values, 400, 50, 3);
    // A part of it, by way of device memory, from an asynchronous copy.
    const CUstream own = stream();
    const CUdeviceptr memory = allocate(40 * 10 * 2);
    CUDA_MEMCPY3D part{};
    part.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    part.srcArray = made;
    part.srcXInBytes = 20;
    part.srcY = 30;
    part.srcZ = 1;
    part.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    part.dstDevice = memory;
    part.dstPitch = 40;
    part.dstHeight = 10;
    part.WidthInBytes = 40;
    part.Height = 10;
    part.Depth = 2;
    ASSERT_OK(cu.cuMemcpy3DAsync_v2(&part, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    const auto direct = read<std::uint8_t>(memory, 800);
    std::vector<std::uint8_t> back(800);
    part.dstMemoryType = CU_MEMORYTYPE_HOST;
    part.dstHost = back.data();
    ASSERT_OK(cu.cuMemcpy3D_v2(&part));
    EXPECT_EQ(back, direct);
    for (size_t z = 0; z < 2; ++z)
        for (size_t y = 0; y < 10; ++y)
            for (size_t x = 0; x < 40; ++x)
                ASSERT_EQ(back[(z * 10 + y) * 40 + x], values[((z + 1) * 50 + y + 30) * 400 + x + 20]);
    part.srcY = 45;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy3D_v2(&part)) << "beyond the array";
    EXPECT_OK(cu.cuArrayDestroy(made));
    EXPECT_NE(CUDA_SUCCESS, cu.cuArrayDestroy(made));
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemcpy3D_v2(&part));
}

TEST_F(Textures, large_arrays_travel_in_pieces) {
    constexpr size_t kRow = 5000, kRows = 700;
    CUarray made = array(kRow, kRows, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
    const auto values = pattern(kRow * kRows, 2);
    fill(made, values, kRow, kRows);
    std::vector<std::uint8_t> back(values.size());
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = made;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = back.data();
    copy.dstPitch = kRow;
    copy.WidthInBytes = kRow;
    copy.Height = kRows;
    ASSERT_OK(cu.cuMemcpy2D_v2(&copy));
    EXPECT_EQ(back, values);
}

TEST_F(Textures, point_sampling_takes_the_texel_that_holds_the_point) {
    const CUtexObject from = texture(places(), CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
    const auto found =
        fetch("fetch2d", from, {{0.0f, 0.0f}, {3.99f, 2.0f}, {7.5f, 3.5f}, {-5.0f, 1.5f}, {100.0f, 9.0f}});
    EXPECT_EQ(found[0].x, value_at(0, 0));
    EXPECT_EQ(found[1].x, value_at(3, 2));
    EXPECT_EQ(found[2].x, value_at(7, 3));
    EXPECT_EQ(found[3].x, value_at(0, 1)) << "clamped";
    EXPECT_EQ(found[4].x, value_at(7, 3));
}

TEST_F(Textures, linear_filtering_has_weights_of_eight_bits) {
    const CUtexObject from = texture(places(), CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR);
    const auto found = fetch(
        "fetch2d", from,
        {{2.5f, 1.5f}, {3.0f, 1.5f}, {2.75f, 2.0f}, {0.0f, 0.0f}, {2.5f + 0.001f, 0.5f}, {2.5f + 1.0f / 256, 0.5f}});
    EXPECT_EQ(found[0].x, value_at(2, 1)) << "the middle of a texel is the texel";
    EXPECT_FLOAT_EQ(found[1].x, (value_at(2, 1) + value_at(3, 1)) / 2);
    EXPECT_FLOAT_EQ(found[2].x, 0.5f * (value_at(2, 1) * 0.75f + value_at(3, 1) * 0.25f) +
                                    0.5f * (value_at(2, 2) * 0.75f + value_at(3, 2) * 0.25f));
    EXPECT_EQ(found[3].x, value_at(0, 0)) << "clamped on both sides";
    EXPECT_EQ(found[4].x, value_at(2, 0)) << "less than half of the least weight";
    EXPECT_FLOAT_EQ(found[5].x, value_at(2, 0) + 1.0f / 256);
}

TEST_F(Textures, normalised_coordinates_wrap_and_mirror) {
    const unsigned normalized = CU_TRSF_NORMALIZED_COORDINATES;
    const CUarray of = places();
    const std::vector<Point> points{{0.3f, 0.3f}, {1.3f, -0.7f}, {-0.05f, 0.3f}};
    const auto wrapped =
        fetch("fetch2d", texture(of, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, normalized), points);
    EXPECT_EQ(wrapped[0].x, value_at(2, 1));
    EXPECT_EQ(wrapped[1].x, value_at(2, 1));
    EXPECT_EQ(wrapped[2].x, value_at(7, 1));
    const auto mirrored =
        fetch("fetch2d", texture(of, CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_POINT, normalized), points);
    EXPECT_EQ(mirrored[0].x, value_at(2, 1));
    EXPECT_EQ(mirrored[1].x, value_at(5, 2)) << "1.3 is 0.7, -0.7 is 0.7";
    EXPECT_EQ(mirrored[2].x, value_at(0, 1));
    const auto linear =
        fetch("fetch2d", texture(of, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR, normalized), {{0.0f, 0.125f}});
    EXPECT_FLOAT_EQ(linear[0].x, (value_at(0, 0) + value_at(7, 0)) / 2) << "across the border";
}

TEST_F(Textures, outside_is_the_border) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = places();
    CUDA_TEXTURE_DESC description{};
    for (auto& mode : description.addressMode) mode = CU_TR_ADDRESS_MODE_BORDER;
    description.borderColor[0] = 9.0f;
    CUtexObject from = 0;
    ASSERT_OK(cu.cuTexObjectCreate(&from, &resource, &description, nullptr));
    const auto found = fetch("fetch2d", from, {{-0.5f, 1.5f}, {8.5f, 1.5f}, {1.5f, 1.5f}});
    EXPECT_EQ(found[0].x, 9.0f);
    EXPECT_EQ(found[1].x, 9.0f);
    EXPECT_EQ(found[2].x, value_at(1, 1));
    CUDA_TEXTURE_DESC kept{};
    ASSERT_OK(cu.cuTexObjectGetTextureDesc(&kept, from));
    EXPECT_EQ(kept.borderColor[0], 9.0f);
    CUDA_RESOURCE_DESC of{};
    ASSERT_OK(cu.cuTexObjectGetResourceDesc(&of, from));
    EXPECT_EQ(of.res.array.hArray, resource.res.array.hArray);
    EXPECT_OK(cu.cuTexObjectDestroy(from));
    EXPECT_NE(CUDA_SUCCESS, cu.cuTexObjectDestroy(from));
}

TEST_F(Textures, bytes_are_read_as_integers_or_as_fractions) {
    const CUarray of = array(4, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4);
    fill(of, std::vector<std::uint8_t>{255, 0, 51, 128, 1, 2, 3, 4, 0, 0, 0, 0, 9, 9, 9, 9}, 16, 1);
    const CUtexObject fractions = texture(of, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
    const auto found = fetch("fetch2d", fractions, {{0.5f, 0.5f}});
    EXPECT_FLOAT_EQ(found[0].x, 1.0f);
    EXPECT_FLOAT_EQ(found[0].z, 0.2f);
    EXPECT_FLOAT_EQ(found[0].w, 128.0f / 255);
    const CUtexObject integers =
        texture(of, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
    struct Words {
        std::uint32_t x, y, z, w;
    };
    const auto words = fetch<Words>("fetch2d_words", integers, {{1.5f, 0.5f}});
    EXPECT_EQ(words[0].x, 1u);
    EXPECT_EQ(words[0].w, 4u);
    const CUarray of_signed = array(2, 1, 0, CU_AD_FORMAT_SIGNED_INT8, 1);
    fill(of_signed, std::vector<std::uint8_t>{0x80, 0x7f}, 2, 1);
    const auto halves = fetch("fetch2d", texture(of_signed, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR),
                              {{0.5f, 0.5f}, {1.5f, 0.5f}});
    EXPECT_FLOAT_EQ(halves[0].x, -1.0f);
    EXPECT_FLOAT_EQ(halves[1].x, 1.0f);
}

TEST_F(Textures, half_precision_texels_are_floats) {
    const CUarray of = array(2, 1, 0, CU_AD_FORMAT_HALF, 2);
    fill(of, std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3800, 0x0000}, 8, 1);  // 1, -2; 0.5, 0
    const auto found =
        fetch("fetch2d", texture(of, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR), {{1.0f, 0.5f}});
    EXPECT_FLOAT_EQ(found[0].x, 0.75f);
    EXPECT_FLOAT_EQ(found[0].y, -1.0f);
}

TEST_F(Textures, four_texels_are_gathered) {
    const auto found =
        fetch("gather2d", texture(places(), CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR), {{3.0f, 2.0f}});
    EXPECT_EQ(found[0].x, value_at(2, 2));
    EXPECT_EQ(found[0].y, value_at(3, 2));
    EXPECT_EQ(found[0].z, value_at(3, 1));
    EXPECT_EQ(found[0].w, value_at(2, 1));
}

TEST_F(Textures, linear_memory_is_zero_outside) {
    const CUdeviceptr memory = allocate(6 * 4), out = allocate(10 * 4);
    write(memory, std::vector<std::int32_t>{10, -11, 12, 13, 14, 15});
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 24;
    const CUtexObject from = texture(resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    ASSERT_OK(launch(function("fetch_linear"), 1, 10, nullptr, from, out));
    EXPECT_EQ(read<std::int32_t>(out, 10), (std::vector<std::int32_t>{0, 0, 10, -11, 12, 13, 14, 15, 0, 0}));
}

TEST_F(Textures, pitched_memory_is_a_picture) {
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    ASSERT_OK(cu.cuMemAllocPitch_v2(&memory, &pitch, kWidth * 4, kHeight, 4));
    for (unsigned y = 0; y < kHeight; ++y) {
        std::vector<float> row;
        for (unsigned x = 0; x < kWidth; ++x) row.push_back(value_at(x, y));
        write(memory + y * pitch, row);
    }
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    resource.res.pitch2D.numChannels = 1;
    resource.res.pitch2D.width = kWidth;
    resource.res.pitch2D.height = kHeight;
    resource.res.pitch2D.pitchInBytes = pitch;
    const CUtexObject from = texture(resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    const auto found = fetch("fetch2d", from, {{2.5f, 3.5f}, {3.0f, 2.0f}});
    EXPECT_EQ(found[0].x, value_at(2, 3));
    EXPECT_FLOAT_EQ(found[1].x, (value_at(2, 1) + value_at(3, 1) + value_at(2, 2) + value_at(3, 2)) / 4);
}

TEST_F(Textures, boxes_and_layers) {
    std::vector<float> values;
    for (unsigned i = 0; i < 4 * 3 * 2; ++i) values.push_back(static_cast<float>(i) * 1.5f);
    const CUdeviceptr out = allocate(values.size() * 4);
    const CUarray box = array(4, 3, 2, CU_AD_FORMAT_FLOAT, 1);
    fill(box, values, 16, 3, 2);
    const auto run = [&](const char* name, CUtexObject from) {
        void* parameters[] = {&from, const_cast<CUdeviceptr*>(&out)};
        EXPECT_OK(cu.cuLaunchKernel(function(name), 1, 1, 1, 4, 3, 2, 0, nullptr, parameters, nullptr));
        return read<float>(out, values.size());
    };
    EXPECT_EQ(run("fetch3d", texture(box, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR)), values);
    const CUarray layers = array(4, 3, 2, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    fill(layers, values, 16, 3, 2);
    EXPECT_EQ(run("fetch_layers", texture(layers, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR)), values);
}

TEST_F(Textures, surfaces_are_read_and_written) {
    const CUarray of = array(8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    std::vector<std::uint32_t> values(32);
    for (std::uint32_t i = 0; i < 32; ++i) values[i] = i * 10;
    fill(of, values, 32, 4);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = of;
    CUsurfObject surface = 0;
    ASSERT_OK(cu.cuSurfObjectCreate(&surface, &resource));
    void* parameters[] = {&surface};
    ASSERT_OK(cu.cuLaunchKernel(function("change_surface"), 1, 1, 1, 8, 4, 1, 0, nullptr, parameters, nullptr));
    const CUdeviceptr out = allocate(8);
    ASSERT_OK(launch(function("outside_surface"), 1, 1, nullptr, surface, out));
    EXPECT_EQ(read<std::uint32_t>(out, 2), (std::vector<std::uint32_t>{0, 7 * 10 * 2 + 7}));
    std::vector<std::uint32_t> back(32);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = of;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = back.data();
    copy.dstPitch = 32;
    copy.WidthInBytes = 32;
    copy.Height = 4;
    ASSERT_OK(cu.cuMemcpy2D_v2(&copy));
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(back[i], i == 7 ? 77 : values[i] * 2 + i % 8) << i;
    EXPECT_OK(cu.cuSurfObjectDestroy(surface));
}

TEST_F(Textures, sizes_can_be_asked_for) {
    const CUdeviceptr out = allocate(8);
    ASSERT_OK(launch(function("size_of"), 1, 1, nullptr,
                     texture(places(), CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT), out));
    EXPECT_EQ(read<std::uint32_t>(out, 2), (std::vector<std::uint32_t>{kWidth, kHeight}));
}

TEST_F(Textures, what_cannot_be_is_refused) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUarray made = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuArray3DCreate_v2(&made, &descriptor));
    descriptor.Width = 4;
    descriptor.NumChannels = 3;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuArray3DCreate_v2(&made, &descriptor));
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC description{};
    CUtexObject from = 0;
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = nullptr;
    EXPECT_NE(CUDA_SUCCESS, cu.cuTexObjectCreate(&from, &resource, &description, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuTexObjectDestroy(0x1234));
    const CUarray plain = places();
    resource.res.array.hArray = plain;
    CUsurfObject surface = 0;
    if (is_software_gpu()) {
        EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuSurfObjectCreate(&surface, &resource)) << "not made for surfaces";
    }
}
