// What happens after a fault of a kernel. A fault may spoil the whole process, so each case runs in a program of its
// own: the test starts this program again with a filter for the case of the same name in Fatal (which is disabled
// otherwise).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "fixture.h"

namespace {

// The exit status of this program, run for one case.
int run_case(const std::string& name) {
    const std::string filter = "--gtest_filter=DISABLED_Fatal." + name;
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "weft-conformance", filter.c_str(), "--gtest_also_run_disabled_tests",
              "--gtest_brief=1", nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace

class FatalErrors : public testing::TestWithParam<const char*> {};

TEST_P(FatalErrors, are_reported_as_the_manual_says) { EXPECT_EQ(run_case(GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Cases, FatalErrors,
                         testing::Values("an_illegal_address_is_sticky", "a_trap_is_a_launch_failure",
                                         "the_process_may_exit_after_a_fault", "bounds_hold_to_the_byte",
                                         "another_context_is_not_concerned", "the_log_names_kernel_and_place",
                                         "work_behind_the_fault_is_dropped",
                                         "queues_behind_running_kernels_are_dropped", "a_forked_child_has_no_driver",
                                         "exit_handlers_may_call_the_driver"),
                         [](const auto& info) { return std::string(info.param); });

class DISABLED_Fatal : public ContextTest {
  protected:
    void TearDown() override {}  // the context may be beyond use; the process ends anyway
};

TEST_F(DISABLED_Fatal, an_illegal_address_is_sticky) {
    CUdeviceptr data = allocate(4);
    const CUevent after = event();
    const CUfunction poke = kernel("poke"), nothing = kernel("nothing");
    ASSERT_OK(launch(poke, 1, 1, nullptr, CUdeviceptr{0x10}, 1u)) << "the launch itself succeeds";
    cu.cuEventRecord(after, nullptr);
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    std::uint32_t word = 0;
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemcpyDtoH_v2(&word, data, 4));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&data, 16));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(nullptr));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventSynchronize(after));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, launch(nothing, 1, 1, nullptr));
}

TEST_F(DISABLED_Fatal, a_trap_is_a_launch_failure) {
    ASSERT_OK(launch(kernel("trap_now"), 1, 1, nullptr));
    const CUresult result = cu.cuCtxSynchronize();
    EXPECT_TRUE(result == CUDA_ERROR_LAUNCH_FAILED || result == CUDA_ERROR_ILLEGAL_INSTRUCTION) << result;
}

TEST_F(DISABLED_Fatal, the_process_may_exit_after_a_fault) {
    ASSERT_OK(launch(kernel("poke"), 100, 256, nullptr, CUdeviceptr{0x10}, 1u));
}

TEST_F(DISABLED_Fatal, bounds_hold_to_the_byte) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr data = allocate(1000);
    ASSERT_OK(launch(kernel("poke"), 1, 1, nullptr, data + 996, 1u));
    EXPECT_OK(cu.cuCtxSynchronize());
    ASSERT_OK(launch(kernel("poke"), 1, 1, nullptr, data + 1000, 1u));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
}

TEST_F(DISABLED_Fatal, another_context_is_not_concerned) {
    SOFTWARE_GPU_ONLY();  // NVIDIA's driver gives the whole process up
    ASSERT_OK(launch(kernel("poke"), 1, 1, nullptr, CUdeviceptr{0x10}, 1u));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
    module = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(launch(kernel("set_value"), 1, 1, nullptr, data, 8u));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 8u);
}

TEST_F(DISABLED_Fatal, the_log_names_kernel_and_place) {
    SOFTWARE_GPU_ONLY();
    struct Log {
        std::mutex mutex;
        std::string text;
    } log;
    CUlogsCallbackHandle handle = nullptr;
    const auto callback = [](void* data, CUlogLevel, char* message, size_t size) {
        auto* told = static_cast<Log*>(data);
        std::lock_guard lock(told->mutex);
        told->text.append(message, size);
    };
    SKIP_IF_UNSUPPORTED(cu.cuLogsRegisterCallback(callback, &log, &handle));
    CUdeviceptr nowhere = 0x770;
    unsigned value = 1;
    void* pointers[] = {&nowhere, &value};
    ASSERT_OK(cu.cuLaunchKernel(kernel("poke"), 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    EXPECT_TRUE(eventually([&] {
        std::lock_guard lock(log.mutex);
        return !log.text.empty();
    }));
    EXPECT_NE(log.text.find("poke"), std::string::npos) << log.text;
    EXPECT_NE(log.text.find("0x770"), std::string::npos) << log.text;
    EXPECT_OK(cu.cuLogsUnregisterCallback(handle));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuLogsUnregisterCallback(handle));
}

TEST_F(DISABLED_Fatal, work_behind_the_fault_is_dropped) {
    const CUfunction spin = kernel("spin"), poke = kernel("poke");
    CUdeviceptr never = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(never, 0, 1));
    const CUstream other = stream(), own = stream();
    ASSERT_OK(cu.cuCtxSynchronize());
    SOFTWARE_GPU_ONLY();  // elsewhere an endless kernel may outlive the fault of another
    ASSERT_OK(launch(spin, 1, 1, other, never));
    ASSERT_OK(launch(poke, 1, 1, own, CUdeviceptr{0x10}, 1u));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize()) << "the endless kernel is ended";
}

// A fault ends the kernels of other streams; what is queued behind them must not end a kernel a second time.
TEST_F(DISABLED_Fatal, queues_behind_running_kernels_are_dropped) {
    SOFTWARE_GPU_ONLY();
    const CUfunction spin = kernel("spin"), poke = kernel("poke"), nothing = kernel("nothing");
    const CUdeviceptr never = allocate(8);
    ASSERT_OK(cu.cuMemsetD32_v2(never, 0, 2));
    const CUstream own = stream();
    std::vector<CUstream> others;
    for (int i = 0; i < 4; ++i) {
        others.push_back(stream());
        ASSERT_OK(launch(spin, 1, 1, others.back(), never));
        for (int behind = 0; behind < 20; ++behind) {
            ASSERT_OK(launch(nothing, 1, 1, others.back()));
            ASSERT_OK(cu.cuMemsetD32Async(never + 4, 7, 1, others.back()));
        }
    }
    ASSERT_OK(launch(poke, 1, 1, own, CUdeviceptr{0x10}, 1u));
    for (const CUstream other : others) EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(other));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
    module = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
    EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(DISABLED_Fatal, a_forked_child_has_no_driver) {
    const pid_t child = fork();
    if (child == 0) {
        int count = 0;
        const bool refused =
            cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && cu.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(launch(kernel("set_value"), 1, 1, nullptr, data, 4u)) << "the parent goes on";
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 4u);
}

TEST_F(DISABLED_Fatal, exit_handlers_may_call_the_driver) {
    static CUcontext in_use;
    static CUdeviceptr data;
    in_use = context;
    data = allocate(1 << 20);
    std::atexit([] {
        const bool fine = cu.cuCtxSetCurrent(in_use) == CUDA_SUCCESS &&
                          cu.cuMemsetD8_v2(data, 0, 1 << 20) == CUDA_SUCCESS && cu.cuCtxSynchronize() == CUDA_SUCCESS &&
                          cu.cuMemFree_v2(data) == CUDA_SUCCESS;
        if (!fine) _exit(3);
    });
}
