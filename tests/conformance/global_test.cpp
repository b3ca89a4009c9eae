#include "fixture.h"

class Globals : public ContextTest {
  protected:
    CUdeviceptr global(const char* name, size_t expected_size) {
        kernel("nothing");
        CUdeviceptr address = 0;
        size_t size = 0;
        EXPECT_OK(cu.cuModuleGetGlobal_v2(&address, &size, module, name)) << name;
        EXPECT_EQ(size, expected_size) << name;
        return address;
    }
};

TEST_F(Globals, have_their_initial_values) {
    EXPECT_EQ(read<std::uint32_t>(global("counter", 4), 1)[0], 41u);
    EXPECT_EQ(read<std::uint32_t>(global("table", 16), 4), (std::vector<std::uint32_t>{10, 20, 30, 40}));
    EXPECT_EQ(read<std::uint8_t>(global("scratch", 1000), 1000), std::vector<std::uint8_t>(1000, 0));
}

TEST_F(Globals, are_seen_by_kernels_and_by_the_host) {
    const CUdeviceptr out = allocate(4);
    ASSERT_OK(launch(kernel("use_globals"), 1, 1, nullptr, out, 2u));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 41u);
    EXPECT_EQ(read<std::uint32_t>(global("counter", 4), 1)[0], 71u);
    write<std::uint32_t>(global("table", 16), {100, 200, 300, 400});
    write<std::uint32_t>(global("counter", 4), {1});
    ASSERT_OK(launch(kernel("use_globals"), 1, 1, nullptr, out, 3u));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 1u);
    EXPECT_EQ(read<std::uint32_t>(global("counter", 4), 1)[0], 401u);
}

TEST_F(Globals, of_two_modules_are_apart) {
    CUmodule other = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&other, kKernels));
    CUdeviceptr second = 0;
    ASSERT_OK(cu.cuModuleGetGlobal_v2(&second, nullptr, other, "counter"));
    EXPECT_NE(second, global("counter", 4));
    EXPECT_OK(cu.cuModuleUnload(other));
}

TEST_F(Globals, unknown_names_are_not_found) {
    kernel("nothing");
    CUdeviceptr address = 0;
    size_t size = 0;
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetGlobal_v2(&address, &size, module, "no_such_variable"));
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetGlobal_v2(&address, &size, module, "step"));
    EXPECT_OK(cu.cuModuleGetGlobal_v2(nullptr, &size, module, "counter"));
    EXPECT_EQ(size, 4u);
}
