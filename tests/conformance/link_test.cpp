#include <cstring>

#include "fixture.h"

class Links : public ContextTest {
  protected:
    static constexpr char kHead[] = ".version 7.0\n.target sm_50\n.address_size 64\n";
    CUresult add(CUlinkState state, const std::string& text) {
        return cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "part", 0,
                                   nullptr, nullptr);
    }
    // out[0] = twice(21), with the function in another text.
    const std::string caller = std::string(kHead) + R"(
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry answer(.param .u64 out) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    {
        .param .b32 argument;
        .param .b32 result;
        st.param.b32 [argument], 21;
        call.uni (result), twice, (argument);
        ld.param.b32 %r1, [result];
    }
    st.global.u32 [%rd1], %r1;
    ret;
}
)";
    const std::string callee = std::string(kHead) + R"(
.visible .func (.param .b32 result) twice(.param .b32 value) {
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
)";
};

TEST_F(Links, one_text_becomes_a_module) {
    CUlinkState state = nullptr;
    ASSERT_OK(cu.cuLinkCreate_v2(0, nullptr, nullptr, &state));
    ASSERT_OK(add(state, kKernels));
    void* image = nullptr;
    size_t size = 0;
    ASSERT_OK(cu.cuLinkComplete(state, &image, &size));
    ASSERT_NE(image, nullptr);
    EXPECT_GT(size, 0u);
    std::vector<char> kept(static_cast<char*>(image), static_cast<char*>(image) + size);
    ASSERT_OK(cu.cuLinkDestroy(state));
    CUmodule linked = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&linked, kept.data())) << "a copy of the image loads after the link is gone";
    CUfunction function = nullptr;
    ASSERT_OK(cu.cuModuleGetFunction(&function, linked, "set_value"));
    const CUdeviceptr out = allocate(4);
    ASSERT_OK(launch(function, 1, 1, nullptr, out, 77u));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 77u);
    EXPECT_OK(cu.cuModuleUnload(linked));
}

TEST_F(Links, functions_are_found_across_texts) {
    CUlinkState state = nullptr;
    ASSERT_OK(cu.cuLinkCreate_v2(0, nullptr, nullptr, &state));
    ASSERT_OK(add(state, caller));
    ASSERT_OK(add(state, callee));
    void* image = nullptr;
    size_t size = 0;
    ASSERT_OK(cu.cuLinkComplete(state, &image, &size));
    CUmodule linked = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&linked, image));
    ASSERT_OK(cu.cuLinkDestroy(state));
    CUfunction function = nullptr;
    ASSERT_OK(cu.cuModuleGetFunction(&function, linked, "answer"));
    const CUdeviceptr out = allocate(4);
    ASSERT_OK(launch(function, 1, 1, nullptr, out));
    EXPECT_EQ(read<std::uint32_t>(out, 1)[0], 42u);
    EXPECT_OK(cu.cuModuleUnload(linked));
}

TEST_F(Links, missing_functions_fail_with_their_name_in_the_log) {
    char errors[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {errors, reinterpret_cast<void*>(sizeof errors)};
    CUlinkState state = nullptr;
    ASSERT_OK(cu.cuLinkCreate_v2(2, options, values, &state));
    CUresult result = add(state, caller);
    void* image = nullptr;
    size_t size = 0;
    if (result == CUDA_SUCCESS) result = cu.cuLinkComplete(state, &image, &size);
    EXPECT_NE(result, CUDA_SUCCESS);
    EXPECT_NE(std::strstr(errors, "twice"), nullptr) << errors;
    EXPECT_OK(cu.cuLinkDestroy(state));
}

TEST_F(Links, broken_texts_are_refused_when_added_or_linked) {
    CUlinkState state = nullptr;
    ASSERT_OK(cu.cuLinkCreate_v2(0, nullptr, nullptr, &state));
    CUresult result = add(state, std::string(kHead) + ".visible .entry k() { bogus; ret; }\n");
    void* image = nullptr;
    size_t size = 0;
    if (result == CUDA_SUCCESS) result = cu.cuLinkComplete(state, &image, &size);
    EXPECT_NE(CUDA_SUCCESS, result);
    EXPECT_OK(cu.cuLinkDestroy(state));
}

TEST_F(Links, wrong_handles_are_refused) {
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuLinkDestroy(reinterpret_cast<CUlinkState>(0x1234)));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, add(nullptr, kKernels));
}
