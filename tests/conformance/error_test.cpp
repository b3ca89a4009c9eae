#include <cstring>

#include "fixture.h"

class Errors : public DriverTest {};

TEST_F(Errors, have_names) {
    const std::pair<CUresult, const char*> names[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
        {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
    };
    for (const auto& [result, expected] : names) {
        const char* name = nullptr;
        ASSERT_OK(cu.cuGetErrorName(result, &name));
        EXPECT_STREQ(name, expected);
    }
}

TEST_F(Errors, have_descriptions) {
    for (CUresult result :
         {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_LAUNCH_FAILED}) {
        const char* text = nullptr;
        ASSERT_OK(cu.cuGetErrorString(result, &text));
        ASSERT_NE(text, nullptr);
        EXPECT_GT(std::strlen(text), 3u);
    }
}

TEST_F(Errors, of_unknown_numbers_are_refused) {
    const char* text = "untouched";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorName(static_cast<CUresult>(123456), &text));
    EXPECT_EQ(text, nullptr);
    text = "untouched";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorString(static_cast<CUresult>(123456), &text));
    EXPECT_EQ(text, nullptr);
}
