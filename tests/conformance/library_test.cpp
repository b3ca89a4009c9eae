#include <cstring>

#include "fixture.h"

class Libraries : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        SKIP_WITHOUT(cuLibraryLoadData);
        ASSERT_OK(cu.cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    }
    void TearDown() override {
        if (library != nullptr) {
            EXPECT_OK(cu.cuLibraryUnload(library));
        }
        ContextTest::TearDown();
    }
    CUkernel get(const char* name) {
        CUkernel found = nullptr;
        EXPECT_OK(cu.cuLibraryGetKernel(&found, library, name)) << name;
        return found;
    }
    CUlibrary library = nullptr;
};

TEST_F(Libraries, kernels_are_found_and_launched_by_their_own_handle) {
    const CUdeviceptr out = allocate(4);
    ASSERT_OK(launch(reinterpret_cast<CUfunction>(get("set_value")), 1, 1, nullptr, out, 5u));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 5u);
    CUkernel none = nullptr;
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetKernel(&none, library, "no_such_kernel"));
}

TEST_F(Libraries, kernels_have_a_function_per_context) {
    CUfunction function = nullptr;
    ASSERT_OK(cu.cuKernelGetFunction(&function, get("set_value")));
    const CUdeviceptr out = allocate(4);
    ASSERT_OK(launch(function, 1, 1, nullptr, out, 6u));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 6u);
}

TEST_F(Libraries, have_a_module_and_variables_in_the_current_context) {
    CUmodule of = nullptr;
    ASSERT_OK(cu.cuLibraryGetModule(&of, library));
    CUdeviceptr by_module = 0, by_library = 0;
    size_t size = 0;
    ASSERT_OK(cu.cuModuleGetGlobal_v2(&by_module, nullptr, of, "counter"));
    ASSERT_OK(cu.cuLibraryGetGlobal(&by_library, &size, library, "counter"));
    EXPECT_EQ(by_module, by_library);
    EXPECT_EQ(size, 4u);
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetGlobal(&by_library, &size, library, "no_such_variable"));
}

TEST_F(Libraries, kernels_have_attributes_names_and_parameters) {
    const CUkernel own = get("small_blocks");
    int value = 0;
    ASSERT_OK(cu.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, own, device));
    EXPECT_EQ(value, 64);
    ASSERT_OK(cu.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, own, device));
    EXPECT_EQ(value, 4096);
    EXPECT_OK(cu.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, own, device));
    if (cu.cuKernelGetName != nullptr) {
        const char* name = nullptr;
        ASSERT_OK(cu.cuKernelGetName(&name, own));
        EXPECT_STREQ(name, "small_blocks");
    }
    if (cu.cuKernelGetParamInfo != nullptr) {
        size_t offset = 99, size = 99;
        ASSERT_OK(cu.cuKernelGetParamInfo(get("set_value"), 1, &offset, &size));
        EXPECT_EQ(offset, 8u);
        EXPECT_EQ(size, 4u);
    }
}

TEST_F(Libraries, list_their_kernels) {
    SKIP_WITHOUT(cuLibraryGetKernelCount);
    unsigned count = 0;
    ASSERT_OK(cu.cuLibraryGetKernelCount(&count, library));
    EXPECT_EQ(count, 12u);
    std::vector<CUkernel> kernels(count);
    SKIP_WITHOUT(cuLibraryEnumerateKernels);
    ASSERT_OK(cu.cuLibraryEnumerateKernels(kernels.data(), count, library));
    for (CUkernel each : kernels) EXPECT_NE(each, nullptr);
}

TEST_F(Libraries, of_broken_text_are_refused) {
    CUlibrary broken = nullptr;
    const char* text = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { bogus; ret; }\n";
    CUresult result = cu.cuLibraryLoadData(&broken, text, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) {  // a driver may look at the text at first use only
        CUkernel found = nullptr;
        CUfunction function = nullptr;
        result = cu.cuLibraryGetKernel(&found, broken, "k");
        if (result == CUDA_SUCCESS) result = cu.cuKernelGetFunction(&function, found);
        cu.cuLibraryUnload(broken);
    }
    EXPECT_NE(result, CUDA_SUCCESS);
}

TEST_F(Libraries, can_be_loaded_and_unloaded_in_a_loop) {
    const size_t before = free_bytes();
    const CUdeviceptr out = allocate(4);
    for (unsigned round = 0; round < 100; ++round) {
        CUlibrary own = nullptr;
        CUkernel set = nullptr;
        ASSERT_OK(cu.cuLibraryLoadData(&own, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
        ASSERT_OK(cu.cuLibraryGetKernel(&set, own, "set_value"));
        ASSERT_OK(launch(reinterpret_cast<CUfunction>(set), 1, 1, nullptr, out, round));
        ASSERT_OK(cu.cuLibraryUnload(own));
    }
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 99u);
    EXPECT_OK(cu.cuMemFree_v2(out));
    EXPECT_GE(free_bytes() + (4 << 20), before);
}
