#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "fixture.h"

// Memory with one address for host and device: managed memory, and page-locked memory that is mapped.
class Unified : public ContextTest, public testing::WithParamInterface<bool> {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (IsSkipped()) return;
        const bool can =
            attribute(GetParam() ? CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY : CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) != 0;
        if (!can) GTEST_SKIP() << "the device says that it cannot";
    }
    // Words for host and device.
    std::uint32_t* shared(size_t count) {
        if (GetParam()) {
            CUdeviceptr address = 0;
            EXPECT_OK(cu.cuMemAllocManaged(&address, count * 4, CU_MEM_ATTACH_GLOBAL));
            return reinterpret_cast<std::uint32_t*>(address);
        }
        void* memory = nullptr;
        EXPECT_OK(cu.cuMemHostAlloc(&memory, count * 4, CU_MEMHOSTALLOC_DEVICEMAP));
        return static_cast<std::uint32_t*>(memory);
    }
    CUdeviceptr on_device(void* memory) {
        if (GetParam()) return reinterpret_cast<CUdeviceptr>(memory);
        CUdeviceptr address = 0;
        EXPECT_OK(cu.cuMemHostGetDevicePointer_v2(&address, memory, 0));
        return address;
    }
    CUresult end(void* memory) {
        return GetParam() ? cu.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(memory)) : cu.cuMemFreeHost(memory);
    }
    // words[i] = words[i] * 3 + 1 for all of them.
    void step(std::uint32_t* words, unsigned count, CUstream on = nullptr) {
        ASSERT_OK(launch(kernel("step"), (count + 127) / 128, 128, on, on_device(words), count));
    }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Unified, testing::Bool(),
                         [](const auto& info) { return info.param ? "managed" : "mapped"; });

TEST_P(Unified, is_coherent_at_launches_and_synchronisations) {
    constexpr unsigned kCount = 300'000;
    std::uint32_t* words = shared(kCount);
    std::vector<std::uint32_t> expected(kCount);
    for (unsigned i = 0; i < kCount; ++i) words[i] = expected[i] = i;
    for (int round = 0; round < 3; ++round) {
        step(words, kCount);
        for (auto& word : expected) word = word * 3 + 1;
        ASSERT_OK(cu.cuCtxSynchronize());
        ASSERT_EQ(words[kCount / 2], expected[kCount / 2]) << round;
        words[7] = expected[7] = 70u + static_cast<unsigned>(round);  // one page, and back
    }
    step(words, kCount);
    for (auto& word : expected) word = word * 3 + 1;
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), words));
    EXPECT_OK(end(words));
}

TEST_P(Unified, what_the_host_wrote_last_is_what_every_stream_sees) {
    constexpr unsigned kCount = 1024;
    std::uint32_t* words = shared(kCount);
    const CUstream streams[] = {stream(), stream(), stream(CU_STREAM_DEFAULT), nullptr};
    std::uint32_t expected = 5;
    std::fill(words, words + kCount, expected);
    for (int round = 0; round < 20; ++round) {
        const CUstream own = streams[round % 4];
        step(words, kCount, own);
        expected = expected * 3 + 1;
        ASSERT_OK(cu.cuStreamSynchronize(own));
        ASSERT_EQ(words[round], expected);
        std::fill(words, words + kCount, ++expected);
    }
    EXPECT_OK(end(words));
}

TEST_P(Unified, several_ranges_are_kept_apart) {
    std::vector<std::uint32_t*> ranges;
    for (unsigned i = 0; i < 10; ++i) {
        ranges.push_back(shared(1000 + i * 100));
        std::fill(ranges[i], ranges[i] + 1000 + i * 100, i);
    }
    EXPECT_OK(end(ranges[3]));
    for (unsigned i = 0; i < 10; i += 2) step(ranges[i], 1000);
    ASSERT_OK(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < 10; ++i) {
        if (i == 3) continue;
        EXPECT_EQ(ranges[i][999], i % 2 == 0 ? i * 3 + 1 : i) << i;
        EXPECT_EQ(ranges[i][999 + i], i == 0 ? 1u : i) << i;
        EXPECT_OK(end(ranges[i]));
    }
    EXPECT_NE(CUDA_SUCCESS, end(ranges[0])) << "freed already";
}

TEST_P(Unified, is_a_source_and_a_target_of_copies) {
    constexpr size_t kSize = 3 << 20;
    auto* bytes = reinterpret_cast<std::uint8_t*>(shared(kSize / 4));
    const auto values = pattern(kSize, 1), others = pattern(kSize, 2);
    const CUdeviceptr memory = allocate(kSize);
    std::copy(values.begin(), values.end(), bytes);
    ASSERT_OK(cu.cuMemcpyHtoD_v2(memory, bytes, kSize));  // as a host address
    EXPECT_EQ(read<std::uint8_t>(memory, kSize), values);
    write(memory, others);
    ASSERT_OK(cu.cuMemcpyDtoH_v2(bytes, memory, kSize));
    EXPECT_TRUE(std::equal(others.begin(), others.end(), bytes));
    ASSERT_OK(cu.cuMemcpyHtoD_v2(on_device(bytes) + 100, values.data(), 1000));  // as a device address
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + 1000, bytes + 100));
    EXPECT_EQ(bytes[99], others[99]);
    bytes[5000] = 1;
    std::vector<std::uint8_t> back(6000);
    ASSERT_OK(cu.cuMemcpyDtoH_v2(back.data(), on_device(bytes), back.size()));
    EXPECT_EQ(back[5000], 1);
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + 1000, back.begin() + 100));
    ASSERT_OK(cu.cuMemsetD8_v2(on_device(bytes) + 10, 0x42, 20));
    EXPECT_EQ(bytes[29], 0x42);
    EXPECT_EQ(bytes[30], others[30]);
    ASSERT_OK(cu.cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), on_device(bytes), 100));
    EXPECT_EQ(back[10], 0x42);
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = bytes;
    box.srcPitch = 1024;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    box.dstHost = back.data();
    box.dstPitch = 10;
    box.WidthInBytes = 10;
    box.Height = 100;
    ASSERT_OK(cu.cuMemcpy2D_v2(&box));
    EXPECT_EQ(back[995], others[99 * 1024 + 5]);
    EXPECT_OK(end(bytes));
}

TEST_P(Unified, parameters_of_a_launch_may_lie_in_it) {
    struct Arguments {
        CUdeviceptr out;
        std::uint32_t value;
    };
    auto* arguments = reinterpret_cast<Arguments*>(shared(1024));
    std::uint32_t* out = shared(1024);
    for (std::uint32_t value = 1; value < 5; ++value) {
        *arguments = {on_device(out), value};
        void* parameters[] = {&arguments->out, &arguments->value};
        ASSERT_OK(cu.cuLaunchKernel(kernel("set_value"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        ASSERT_OK(cu.cuCtxSynchronize());
        EXPECT_EQ(*out, value);
    }
}

TEST_P(Unified, many_threads_may_touch_it_at_once) {
    constexpr unsigned kCount = 1 << 18, kThreads = 4;
    std::uint32_t* words = shared(kCount);
    std::fill(words, words + kCount, 1);
    for (int round = 0; round < 5; ++round) {
        step(words, kCount);
        ASSERT_OK(cu.cuCtxSynchronize());
        std::vector<std::thread> threads;
        std::vector<unsigned> wrong(kThreads);
        const std::uint32_t expected = round % 2 == 0 ? 4 : 13;
        for (unsigned t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (unsigned i = t; i < kCount; i += kThreads) {
                    wrong[t] += words[i] != expected ? 1 : 0;
                    if (round % 2 == 1) words[i] = 1;
                }
            });
        }
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(wrong, std::vector<unsigned>(kThreads)) << round;
    }
}

TEST_P(Unified, pointers_to_it_are_known) {
    std::uint32_t* words = shared(100);
    const auto address = reinterpret_cast<CUdeviceptr>(words);
    unsigned type = 0, managed = 7;
    ASSERT_OK(cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    EXPECT_EQ(managed, GetParam() ? 1u : 0u);
    ASSERT_OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT_EQ(type, static_cast<unsigned>(GetParam() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    void* host = nullptr;
    CUdeviceptr device_address = 0;
    ASSERT_OK(cu.cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address + 4));
    EXPECT_EQ(host, words + 1);
    ASSERT_OK(cu.cuPointerGetAttribute(&device_address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address));
    EXPECT_EQ(device_address, on_device(words));
    EXPECT_OK(end(words));
    EXPECT_NE(CUDA_SUCCESS, cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
}

TEST_P(Unified, goes_with_its_context) {
    for (int i = 0; i < 3; ++i) {
        CUcontext other = nullptr;
        ASSERT_OK(cu.cuCtxCreate_v2(&other, 0, device));
        std::uint32_t* words = shared(5000);
        words[1] = 1;
        ASSERT_OK(cu.cuCtxDestroy_v2(other));
        ASSERT_OK(cu.cuCtxSetCurrent(context));
    }
}

class Managed : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 0) GTEST_SKIP() << "no managed memory";
    }
    std::uint32_t* managed(size_t count) {
        CUdeviceptr address = 0;
        EXPECT_OK(cu.cuMemAllocManaged(&address, count * 4, CU_MEM_ATTACH_GLOBAL));
        return reinterpret_cast<std::uint32_t*>(address);
    }
};

TEST_F(Managed, bad_arguments_are_refused) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocManaged(&address, 16, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocManaged(&address, 16, CU_MEM_ATTACH_SINGLE));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocManaged(nullptr, 16, CU_MEM_ATTACH_GLOBAL));
    size_t total = 0;
    ASSERT_OK(cu.cuDeviceTotalMem_v2(&total, device));
    const CUdeviceptr ordinary = allocate(4096);
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemPrefetchAsync(ordinary, 4096, device, nullptr)) << "not managed";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamAttachMemAsync(nullptr, ordinary, 0, CU_MEM_ATTACH_GLOBAL));
}

TEST_F(Managed, hints_are_taken_and_change_nothing) {
    std::uint32_t* words = managed(10000);
    const auto address = reinterpret_cast<CUdeviceptr>(words);
    words[9999] = 4;
    EXPECT_OK(cu.cuMemAdvise(address, 40000, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    EXPECT_OK(cu.cuMemAdvise(address, 40000, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    EXPECT_OK(cu.cuMemPrefetchAsync(address, 40000, device, nullptr));
    ASSERT_OK(launch(kernel("step"), 79, 128, nullptr, address, 10000u));
    EXPECT_OK(cu.cuMemPrefetchAsync(address, 40000, CU_DEVICE_CPU, nullptr));
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(words[9999], 13u);
}

TEST_F(Managed, system_calls_reach_pages_that_were_prefetched_to_the_host) {
    std::uint32_t* words = managed(50000);
    const auto address = reinterpret_cast<CUdeviceptr>(words);
    std::fill(words, words + 50000, 2);
    ASSERT_OK(launch(kernel("step"), 391, 128, nullptr, address, 50000u));
    ASSERT_OK(cu.cuMemPrefetchAsync(address, 200000, CU_DEVICE_CPU, nullptr));
    ASSERT_OK(cu.cuCtxSynchronize());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], words + 49000, 4000), 4000);
    std::vector<std::uint32_t> back(1000);
    EXPECT_EQ(::read(ends[0], back.data(), 4000), 4000);
    EXPECT_EQ(back, std::vector<std::uint32_t>(1000, 7));
    close(ends[0]);
    close(ends[1]);
}

TEST_F(Managed, ranges_of_the_host_are_left_alone_by_work) {
    std::uint32_t* mine = managed(1024);
    std::uint32_t* theirs = managed(1024);
    ASSERT_OK(cu.cuStreamAttachMemAsync(nullptr, reinterpret_cast<CUdeviceptr>(mine), 0, CU_MEM_ATTACH_HOST));
    ASSERT_OK(cu.cuCtxSynchronize());
    theirs[0] = 0;
    const CUstream own = stream();
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(launch(kernel("step"), 1, 128, own, reinterpret_cast<CUdeviceptr>(theirs), 1u));
    for (unsigned i = 0; i < 1024; ++i) mine[i] = i;  // while the kernel runs
    EXPECT_EQ(mine[1000], 1000u);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(theirs[0], 1u);
    ASSERT_OK(cu.cuStreamAttachMemAsync(own, reinterpret_cast<CUdeviceptr>(mine), 0, CU_MEM_ATTACH_SINGLE));
    ASSERT_OK(launch(kernel("step"), 8, 128, own, reinterpret_cast<CUdeviceptr>(mine), 1024u));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(mine[1000], 3001u);
}

TEST_F(Managed, running_out_is_an_error_to_go_on_from) {
    size_t total = 0;
    ASSERT_OK(cu.cuDeviceTotalMem_v2(&total, device));
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAllocManaged(&address, total + (1 << 20), CU_MEM_ATTACH_GLOBAL));
    std::uint32_t* words = managed(16);
    words[0] = 1;
    EXPECT_EQ(words[0], 1u);
}

namespace {

sigjmp_buf g_back;
volatile std::uintptr_t g_fault = 0;
struct sigaction g_before;

void jump_back(int, siginfo_t* info, void*) {
    g_fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
    siglongjmp(g_back, 1);
}

// Hands on what is not its own, as a library does.
void hand_on(int signal, siginfo_t* info, void* context) {
    if (reinterpret_cast<std::uintptr_t>(info->si_addr) == 0x10) jump_back(signal, info, context);
    if ((g_before.sa_flags & SA_SIGINFO) != 0) {
        g_before.sa_sigaction(signal, info, context);
    } else {
        _exit(9);
    }
}

bool touching_faults(std::uintptr_t address) {
    g_fault = 0;
    if (sigsetjmp(g_back, 1) == 0) {
        *reinterpret_cast<volatile int*>(address) = 1;
        return false;
    }
    return g_fault == address;
}

}  // namespace

TEST_F(Managed, the_programs_own_handler_sees_its_own_faults_only) {
    struct sigaction own{};
    own.sa_sigaction = &jump_back;
    own.sa_flags = SA_SIGINFO;
    struct sigaction before;
    sigaction(SIGSEGV, &own, &before);
    for (int round = 0; round < 2; ++round) {
        std::uint32_t* words = managed(5000);
        words[0] = 2;
        ASSERT_OK(launch(kernel("step"), 1, 128, nullptr, reinterpret_cast<CUdeviceptr>(words), 1u));
        ASSERT_OK(cu.cuCtxSynchronize());
        EXPECT_EQ(words[0], 7u);
        EXPECT_TRUE(touching_faults(0x10)) << round;
        EXPECT_TRUE(touching_faults(0x18)) << round;
        // Installed again, over whatever there is: it becomes the one to hand on to with the next launch.
        if (round == 0) {
            own.sa_sigaction = &hand_on;
            sigaction(SIGSEGV, &own, &g_before);
            ASSERT_OK(launch(kernel("step"), 1, 128, nullptr, reinterpret_cast<CUdeviceptr>(words), 1u));
            ASSERT_OK(cu.cuCtxSynchronize());
            EXPECT_EQ(words[0], 22u);
            EXPECT_TRUE(touching_faults(0x10));
        }
    }
    sigaction(SIGSEGV, &before, nullptr);
}
