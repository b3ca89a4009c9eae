#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "fixture.h"

class Launches : public ContextTest {
  protected:
    CUresult shaped(CUfunction function, std::array<unsigned, 3> grid, std::array<unsigned, 3> block,
                    unsigned shared = 0, void** pointers = nullptr, void** extra = nullptr) {
        return cu.cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, nullptr,
                                 pointers, extra);
    }
};

TEST_F(Launches, every_thread_knows_its_place) {
    const std::array<unsigned, 3> grid = {3, 2, 4}, block = {5, 7, 3};
    const unsigned blocks = grid[0] * grid[1] * grid[2], threads = block[0] * block[1] * block[2];
    CUdeviceptr out = allocate(blocks * threads * 8);
    void* pointers[] = {&out};
    ASSERT_OK(shaped(kernel("coordinates"), grid, block, 0, pointers));
    const auto words = read<std::uint32_t>(out, blocks * threads * 2);
    for (unsigned b = 0; b < blocks; ++b) {
        for (unsigned t = 0; t < threads; ++t) {
            const unsigned of_block = b % grid[0] | b / grid[0] % grid[1] << 8 | b / (grid[0] * grid[1]) << 16;
            const unsigned of_thread = t % block[0] | t / block[0] % block[1] << 8 | t / (block[0] * block[1]) << 16;
            ASSERT_EQ(words[(b * threads + t) * 2], of_block);
            ASSERT_EQ(words[(b * threads + t) * 2 + 1], of_thread);
        }
    }
}

TEST_F(Launches, parameters_of_every_size_arrive) {
    struct Triple {
        std::uint32_t words[3];
    } triple{{1, 2, 4000000000u}};
    std::uint8_t a = 200;
    std::uint16_t b = 60000;
    double c = -1.5;
    std::uint32_t d = 3000000000u;
    float e = 0.25f;
    CUdeviceptr out = allocate(48);
    void* pointers[] = {&a, &b, &c, &d, &e, &triple, &out};
    ASSERT_OK(shaped(kernel("parameters"), {1, 1, 1}, {1, 1, 1}, 0, pointers));
    EXPECT_EQ(read<double>(out, 6), (std::vector<double>{200, 60000, -1.5, 3000000000.0, 0.25, 4000000000.0}));
}

TEST_F(Launches, parameters_come_packed_as_well) {
    CUdeviceptr out = allocate(48);
    unsigned char packed[48] = {};
    packed[0] = 7;
    const std::uint16_t b = 8;
    const double c = 9;
    const std::uint32_t d = 10, word = 12;
    const float e = 11;
    std::memcpy(packed + 2, &b, 2);
    std::memcpy(packed + 8, &c, 8);
    std::memcpy(packed + 16, &d, 4);
    std::memcpy(packed + 20, &e, 4);
    std::memcpy(packed + 32, &word, 4);
    std::memcpy(packed + 40, &out, 8);
    size_t size = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    ASSERT_OK(shaped(kernel("parameters"), {1, 1, 1}, {1, 1, 1}, 0, nullptr, extra));
    std::memset(packed, 0xff, sizeof packed);  // taken at the call
    EXPECT_EQ(read<double>(out, 6), (std::vector<double>{7, 8, 9, 10, 11, 12}));
}

TEST_F(Launches, both_forms_of_parameters_at_once_are_refused) {
    CUdeviceptr out = allocate(4);
    unsigned value = 1;
    void* pointers[] = {&out, &value};
    size_t size = 16;
    unsigned char packed[16] = {};
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(kernel("set_value"), {1, 1, 1}, {1, 1, 1}, 0, pointers, extra));
}

TEST_F(Launches, limits_are_checked_at_the_call) {
    const CUfunction nothing = kernel("nothing");
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {0, 1, 1}, {1, 1, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 1}, {1, 0, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 1}, {1025, 1, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 1}, {1, 1, 65}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 1}, {512, 4, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 65536, 1}, {1, 1, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 65536}, {1, 1, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(nothing, {1, 1, 1}, {1, 1, 1}, 1 << 20));
    EXPECT_OK(shaped(nothing, {1, 1, 1}, {1024, 1, 1}));
    EXPECT_OK(shaped(nothing, {1, 1, 1}, {1, 1, 64}));
    EXPECT_OK(shaped(nothing, {70000, 1, 1}, {1, 1, 1}));
    EXPECT_OK(cu.cuCtxSynchronize()) << "refused launches leave no error behind";
}

TEST_F(Launches, the_limit_of_the_function_counts) {
    CUdeviceptr out = allocate(4);
    void* pointers[] = {&out};
    EXPECT_OK(shaped(kernel("small_blocks"), {1, 1, 1}, {64, 1, 1}, 0, pointers));
    const CUresult result = shaped(kernel("small_blocks"), {1, 1, 1}, {65, 1, 1}, 0, pointers);
    EXPECT_TRUE(result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) << result;
    EXPECT_EQ(read<int>(out, 1)[0], 7);
}

TEST_F(Launches, dynamic_shared_memory) {
    const unsigned n = 1000;
    std::vector<std::uint32_t> values(n);
    std::iota(values.begin(), values.end(), 100u);
    CUdeviceptr in = allocate(n * 4), out = allocate(n * 4);
    write(in, values);
    void* pointers[] = {&out, &in};
    ASSERT_OK(shaped(kernel("reverse"), {1, 1, 1}, {n, 1, 1}, n * 4, pointers));
    std::reverse(values.begin(), values.end());
    EXPECT_EQ(read<std::uint32_t>(out, n), values);
}

TEST_F(Launches, dynamic_shared_memory_beyond_48_kib_needs_a_request) {
    const CUfunction reverse = kernel("reverse");
    CUdeviceptr in = allocate(4096), out = allocate(4096);
    void* pointers[] = {&out, &in};
    constexpr unsigned kBytes = 64 << 10;
    if (attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) < static_cast<int>(kBytes)) GTEST_SKIP();
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(reverse, {1, 1, 1}, {32, 1, 1}, kBytes, pointers));
    ASSERT_OK(cu.cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kBytes));
    EXPECT_OK(shaped(reverse, {1, 1, 1}, {32, 1, 1}, kBytes, pointers));
    EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(Launches, with_attributes) {
    SKIP_WITHOUT(cuLaunchKernelEx);
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    CUlaunchAttribute attributes[2]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[0].value.cooperative = 1;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    CUlaunchConfig config{};
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 32;
    config.attrs = attributes;
    config.numAttrs = 2;
    void* pointers[] = {&data};
    ASSERT_OK(cu.cuLaunchKernelEx(&config, kernel("increment"), pointers, nullptr));
    config.numAttrs = 0;
    config.attrs = nullptr;
    ASSERT_OK(cu.cuLaunchKernelEx(&config, kernel("increment"), pointers, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 256u);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernelEx(nullptr, kernel("increment"), pointers, nullptr));
}

TEST_F(Launches, cooperative_grids_must_fit) {
    CUdeviceptr data = allocate(4);
    void* pointers[] = {&data};
    const CUfunction increment = kernel("increment");
    EXPECT_OK(cu.cuLaunchCooperativeKernel(increment, 2, 1, 1, 64, 1, 1, 0, nullptr, pointers));
    EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
              cu.cuLaunchCooperativeKernel(increment, 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, pointers));
}

TEST_F(Launches, many_blocks_all_run) {
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(launch(kernel("increment"), 2000, 100, nullptr, data));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 200000u);
}

TEST_F(Launches, many_in_a_row_keep_their_order) {
    const unsigned n = 100;
    CUdeviceptr data = allocate(n * 4);
    std::vector<std::uint32_t> expected(n);
    std::iota(expected.begin(), expected.end(), 0u);
    write(data, expected);
    const CUstream own = stream();
    constexpr int kRounds = 3000;  // more than any queue holds
    for (int round = 0; round < kRounds; ++round) {
        ASSERT_OK(launch(kernel("step"), 4, 32, own, data, n));
        for (auto& value : expected) value = value * 3 + 1;
    }
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, n), expected);
}

TEST_F(Launches, wrong_functions_are_refused) {
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, shaped(nullptr, {1, 1, 1}, {1, 1, 1}));
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, shaped(reinterpret_cast<CUfunction>(0x1234567), {1, 1, 1}, {1, 1, 1}));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, shaped(kernel("set_value"), {1, 1, 1}, {1, 1, 1})) << "no parameters given";
}
