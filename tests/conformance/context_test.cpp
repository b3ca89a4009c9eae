#include <thread>

#include "fixture.h"

class Contexts : public DriverTest {
  protected:
    CUcontext current() {
        CUcontext context = nullptr;
        EXPECT_OK(cu.cuCtxGetCurrent(&context));
        return context;
    }
};

TEST_F(Contexts, there_is_none_at_first) {
    EXPECT_EQ(current(), nullptr);
    CUdevice number = -1;
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxGetDevice(&number));
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuMemAlloc_v2(&address, 16));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxPopCurrent_v2(nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxSynchronize());
}

TEST_F(Contexts, a_new_one_is_current_until_destroyed) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    EXPECT_EQ(current(), context);
    CUdevice number = -1;
    EXPECT_OK(cu.cuCtxGetDevice(&number));
    EXPECT_EQ(number, device);
    ASSERT_OK(cu.cuCtxDestroy_v2(context));
    EXPECT_EQ(current(), nullptr);
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxSetCurrent(context));
}

TEST_F(Contexts, creation_checks_its_arguments) {
    CUcontext context = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuCtxCreate_v2(nullptr, 0, device));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuCtxCreate_v2(&context, 0x40000000, device));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuCtxCreate_v2(&context, 0, 999));
    EXPECT_EQ(current(), nullptr);
}

TEST_F(Contexts, form_a_stack) {
    CUcontext first = nullptr, second = nullptr, popped = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&first, 0, device));
    ASSERT_OK(cu.cuCtxCreate_v2(&second, 0, device));
    EXPECT_NE(first, second);
    EXPECT_EQ(current(), second);
    ASSERT_OK(cu.cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, second);
    EXPECT_EQ(current(), first);
    ASSERT_OK(cu.cuCtxPushCurrent_v2(second));
    ASSERT_OK(cu.cuCtxPushCurrent_v2(first));
    EXPECT_EQ(current(), first);
    ASSERT_OK(cu.cuCtxPopCurrent_v2(nullptr));
    EXPECT_EQ(current(), second);
    ASSERT_OK(cu.cuCtxSetCurrent(first)) << "replaces the top";
    ASSERT_OK(cu.cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, first);
    EXPECT_EQ(current(), first);
    EXPECT_OK(cu.cuCtxDestroy_v2(second));
    EXPECT_OK(cu.cuCtxDestroy_v2(first));
    EXPECT_EQ(current(), nullptr);
}

TEST_F(Contexts, are_current_per_thread) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    std::thread other([&] {
        EXPECT_EQ(current(), nullptr);
        EXPECT_OK(cu.cuCtxSetCurrent(context));
        CUdeviceptr address = 0;
        EXPECT_OK(cu.cuMemAlloc_v2(&address, 256));
        EXPECT_OK(cu.cuMemFree_v2(address));
        EXPECT_OK(cu.cuCtxSetCurrent(nullptr));
        EXPECT_EQ(current(), nullptr);
    });
    other.join();
    EXPECT_EQ(current(), context);
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
}

TEST_F(Contexts, destroyed_in_one_thread_are_gone_in_all) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    std::thread([&] { EXPECT_OK(cu.cuCtxDestroy_v2(context)); }).join();
    CUdeviceptr address = 0;
    const CUresult result = cu.cuMemAlloc_v2(&address, 256);
    EXPECT_TRUE(result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT) << result;
    EXPECT_OK(cu.cuCtxSetCurrent(nullptr));
}

TEST_F(Contexts, give_their_memory_back) {
    CUcontext keeper = nullptr, context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&keeper, 0, device));
    size_t before = 0, after = 0, total = 0;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    ASSERT_OK(cu.cuMemGetInfo_v2(&before, &total));
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAlloc_v2(&address, 64 << 20));
    ASSERT_OK(cu.cuCtxDestroy_v2(context));
    ASSERT_OK(cu.cuCtxSetCurrent(keeper));
    ASSERT_OK(cu.cuMemGetInfo_v2(&after, &total));
    EXPECT_GE(after, before);
    EXPECT_OK(cu.cuCtxDestroy_v2(keeper));
}

TEST_F(Contexts, have_flags_versions_and_ids) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, CU_CTX_SCHED_BLOCKING_SYNC, device));
    unsigned flags = 0, version = 0;
    EXPECT_OK(cu.cuCtxGetFlags(&flags));
    EXPECT_EQ(flags & CU_CTX_SCHED_MASK, static_cast<unsigned>(CU_CTX_SCHED_BLOCKING_SYNC));
    EXPECT_OK(cu.cuCtxGetApiVersion(context, &version));
    EXPECT_GE(version, 3010u);
    if (cu.cuCtxGetId != nullptr) {
        unsigned long long id = 0, same = 0;
        EXPECT_OK(cu.cuCtxGetId(context, &id));
        EXPECT_OK(cu.cuCtxGetId(nullptr, &same));
        EXPECT_EQ(id, same);
    }
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
}

TEST_F(Contexts, have_limits) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    size_t value = 0;
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_GE(value, 256u);
    EXPECT_OK(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_GE(value, 4096u);
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT_NE(CUDA_SUCCESS, cu.cuCtxGetLimit(&value, static_cast<CUlimit>(999)));
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
}

TEST_F(Contexts, have_a_range_of_priorities) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    int least = -100, greatest = -100;
    EXPECT_OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(least, 0);
    EXPECT_LE(greatest, 0);
    EXPECT_OK(cu.cuCtxGetStreamPriorityRange(nullptr, nullptr));
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
}

TEST_F(Contexts, invalid_handles_are_refused) {
    const auto junk = reinterpret_cast<CUcontext>(0x1234567890ull);
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxSetCurrent(junk));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxPushCurrent_v2(junk));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxDestroy_v2(junk));
}

class PrimaryContexts : public Contexts {
  protected:
    int active() {
        unsigned flags = 0;
        int active = -1;
        EXPECT_OK(cu.cuDevicePrimaryCtxGetState(device, &flags, &active));
        return active;
    }
};

TEST_F(PrimaryContexts, live_while_they_are_retained) {
    ASSERT_EQ(active(), 0);
    CUcontext first = nullptr, second = nullptr;
    ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&first, device));
    ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&second, device));
    EXPECT_EQ(first, second);
    EXPECT_EQ(active(), 1);
    EXPECT_EQ(current(), nullptr) << "retaining makes nothing current";
    ASSERT_OK(cu.cuDevicePrimaryCtxRelease_v2(device));
    EXPECT_EQ(active(), 1);
    ASSERT_OK(cu.cuDevicePrimaryCtxRelease_v2(device));
    EXPECT_EQ(active(), 0);
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(device));
}

TEST_F(PrimaryContexts, cannot_be_destroyed_like_others) {
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&context, device));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxDestroy_v2(context));
    EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(device));
}

TEST_F(PrimaryContexts, keep_the_flags_they_are_given) {
    ASSERT_OK(cu.cuDevicePrimaryCtxSetFlags_v2(device, CU_CTX_SCHED_YIELD));
    unsigned flags = 0;
    int is_active = -1;
    EXPECT_OK(cu.cuDevicePrimaryCtxGetState(device, &flags, &is_active));
    EXPECT_EQ(flags & CU_CTX_SCHED_MASK, static_cast<unsigned>(CU_CTX_SCHED_YIELD));
    EXPECT_OK(cu.cuDevicePrimaryCtxSetFlags_v2(device, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuDevicePrimaryCtxSetFlags_v2(device, 0x40000000));
}

TEST_F(PrimaryContexts, can_be_used_again_after_the_last_release) {
    for (int round = 0; round < 3; ++round) {
        CUcontext context = nullptr;
        ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&context, device));
        ASSERT_OK(cu.cuCtxSetCurrent(context));
        CUdeviceptr address = 0;
        EXPECT_OK(cu.cuMemAlloc_v2(&address, 1 << 20));
        EXPECT_OK(cu.cuMemsetD8_v2(address, 1, 1 << 20));
        EXPECT_OK(cu.cuCtxSynchronize());
        ASSERT_OK(cu.cuCtxSetCurrent(nullptr));
        ASSERT_OK(cu.cuDevicePrimaryCtxRelease_v2(device));
    }
}
