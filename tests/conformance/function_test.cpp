#include "fixture.h"

class Functions : public ContextTest {
  protected:
    int get(const char* name, CUfunction_attribute what) {
        int value = -1;
        EXPECT_OK(cu.cuFuncGetAttribute(&value, what, kernel(name))) << what;
        return value;
    }
};

TEST_F(Functions, have_attributes) {
    EXPECT_EQ(get("nothing", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
    EXPECT_EQ(get("small_blocks", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 4096);
    EXPECT_EQ(get("small_blocks", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    EXPECT_GE(get("nothing", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
    EXPECT_GE(get("step", CU_FUNC_ATTRIBUTE_NUM_REGS), 1);
    EXPECT_LE(get("step", CU_FUNC_ATTRIBUTE_NUM_REGS), 255);
    EXPECT_EQ(get("nothing", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    EXPECT_GE(get("nothing", CU_FUNC_ATTRIBUTE_PTX_VERSION), 50);
    EXPECT_GE(get("nothing", CU_FUNC_ATTRIBUTE_BINARY_VERSION), 50);
    EXPECT_GE(get("nothing", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 48 * 1024);
    int value = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cu.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(999), kernel("nothing")));
}

TEST_F(Functions, take_larger_dynamic_shared_memory_on_request) {
    const CUfunction reverse = kernel("reverse");
    const int most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    ASSERT_OK(cu.cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    EXPECT_EQ(get("reverse", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), most);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cu.cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_NUM_REGS, 10))
        << "cannot be set";
    EXPECT_OK(cu.cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    EXPECT_OK(cu.cuFuncSetCacheConfig(reverse, CU_FUNC_CACHE_PREFER_L1));
}

TEST_F(Functions, know_their_module_and_name) {
    CUmodule of = nullptr;
    ASSERT_OK(cu.cuFuncGetModule(&of, kernel("step")));
    EXPECT_EQ(of, module);
    SKIP_WITHOUT(cuFuncGetName);
    const char* name = nullptr;
    ASSERT_OK(cu.cuFuncGetName(&name, kernel("step")));
    EXPECT_STREQ(name, "step");
}

TEST_F(Functions, know_where_their_parameters_lie) {
    SKIP_WITHOUT(cuFuncGetParamInfo);
    const CUfunction parameters = kernel("parameters");
    const std::pair<size_t, size_t> expected[] = {{0, 1}, {2, 2}, {8, 8}, {16, 4}, {20, 4}, {24, 12}, {40, 8}};
    for (size_t i = 0; i < 7; ++i) {
        size_t offset = 99, size = 99;
        ASSERT_OK(cu.cuFuncGetParamInfo(parameters, i, &offset, &size));
        EXPECT_EQ(offset, expected[i].first) << i;
        EXPECT_EQ(size, expected[i].second) << i;
    }
    size_t offset = 0, size = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuFuncGetParamInfo(parameters, 7, &offset, &size));
}
