// What the tests share: a context per test, device memory that frees itself, the kernels, and a kernel that runs until
// it is told to stop. Expected behaviour is that of the CUDA driver API manual.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "api.h"

// Failures print the error's name.
void PrintTo(CUresult result, std::ostream* out);

#define ASSERT_OK(call) ASSERT_EQ(CUDA_SUCCESS, call)
#define EXPECT_OK(call) EXPECT_EQ(CUDA_SUCCESS, call)
// For calls that a driver may lack or not support.
#define SKIP_WITHOUT(function) \
    if (cu.function == nullptr) GTEST_SKIP() << #function << " is missing"
#define SKIP_IF_UNSUPPORTED(call)                                                               \
    do {                                                                                        \
        const CUresult skip_result = (call);                                                    \
        if (skip_result == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP() << #call " is not supported"; \
        ASSERT_EQ(CUDA_SUCCESS, skip_result);                                                   \
    } while (0)

extern const char kKernels[];  // PTX of all kernels that the tests use

bool is_software_gpu();
#define SOFTWARE_GPU_ONLY() \
    if (!is_software_gpu()) GTEST_SKIP() << "holds on the software GPU only"

// cuInit has been called; no context.
class DriverTest : public testing::Test {
  protected:
    static void SetUpTestSuite() { cu.cuInit(0); }
    void SetUp() override {
        ASSERT_OK(cu.cuInit(0));
        ASSERT_OK(cu.cuDeviceGet(&device, 0));
    }
    int attribute(CUdevice_attribute id) const {
        int value = 0;
        EXPECT_OK(cu.cuDeviceGetAttribute(&value, id, device));
        return value;
    }
    CUdevice device = 0;
};

// A context of its own is current, and gone after the test.
class ContextTest : public DriverTest {
  protected:
    void SetUp() override;
    void TearDown() override;

    // The function of kKernels, whose module is loaded at first use.
    CUfunction kernel(const char* name);
    CUdeviceptr allocate(size_t bytes);  // freed with the context
    CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
    CUevent event(unsigned flags = CU_EVENT_DEFAULT);
    template <typename T>
    T* pinned(size_t count) {
        void* memory = nullptr;
        EXPECT_OK(cu.cuMemHostAlloc(&memory, count * sizeof(T), 0));
        return static_cast<T*>(memory);
    }
    size_t free_bytes() {
        size_t free = 0, total = 0;
        EXPECT_OK(cu.cuMemGetInfo_v2(&free, &total));
        return free;
    }
    // One-dimensional launch; the arguments are passed by address.
    template <typename... Arguments>
    CUresult launch(CUfunction function, unsigned blocks, unsigned threads, CUstream on, Arguments... arguments) {
        void* pointers[] = {&arguments..., nullptr};
        return cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, on, pointers, nullptr);
    }
    template <typename T>
    std::vector<T> read(CUdeviceptr from, size_t count) {
        std::vector<T> values(count);
        EXPECT_OK(cu.cuMemcpyDtoH_v2(values.data(), from, count * sizeof(T)));
        return values;
    }
    template <typename T>
    void write(CUdeviceptr to, const std::vector<T>& values) {
        EXPECT_OK(cu.cuMemcpyHtoD_v2(to, values.data(), values.size() * sizeof(T)));
    }

    CUcontext context = nullptr;
    CUmodule module = nullptr;
};

// A kernel of one thread that runs in `stream` until release(), which a second stream does by a copy from page-locked
// memory.
class Spinner {
  public:
    Spinner(CUfunction spin, CUstream stream);
    ~Spinner() { release(); }
    void release();

  private:
    CUdeviceptr flag_ = 0;
    CUstream release_stream_ = nullptr;
    std::uint32_t* one_ = nullptr;
    bool released_ = false;
};

// Polls until the condition holds; false after ten seconds.
bool eventually(const std::function<bool()>& condition);
// Values that depend on the position and the seed.
std::vector<std::uint8_t> pattern(size_t bytes, unsigned seed);
