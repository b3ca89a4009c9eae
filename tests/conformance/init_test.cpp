#include "fixture.h"

class Init : public DriverTest {};

TEST_F(Init, may_be_repeated) {
    EXPECT_OK(cu.cuInit(0));
    EXPECT_OK(cu.cuInit(0));
}

TEST_F(Init, refuses_flags) { EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuInit(1)); }

TEST_F(Init, reports_a_version_of_cuda_12_or_later) {
    int version = 0;
    ASSERT_OK(cu.cuDriverGetVersion(&version));
    EXPECT_GE(version, 12000);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuDriverGetVersion(nullptr));
}

TEST_F(Init, knows_no_private_tables) {
    SOFTWARE_GPU_ONLY();
    const void* table = &table;
    CUuuid id{};
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuGetExportTable(&table, &id));
}

TEST_F(Init, profiler_control_needs_a_context) {
    CUcontext current = nullptr;
    ASSERT_OK(cu.cuCtxGetCurrent(&current));
    ASSERT_EQ(current, nullptr);
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuProfilerStop());
}
