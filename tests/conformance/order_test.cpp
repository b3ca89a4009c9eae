// How the default streams and the others are ordered among each other.
#include <dlfcn.h>

#include <cstring>
#include <thread>

#include "fixture.h"

class Order : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        data = allocate(4);
        ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
        ASSERT_OK(launch(kernel("increment"), 1, 1, nullptr, data));
        ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
        ASSERT_OK(cu.cuCtxSynchronize());
    }
    // The value that a non-blocking stream sees just now.
    std::uint32_t now() {
        const CUstream reader = stream();
        auto* word = pinned<std::uint32_t>(1);
        EXPECT_OK(cu.cuMemcpyDtoHAsync_v2(word, data, 4, reader));
        EXPECT_OK(cu.cuStreamSynchronize(reader));
        return *word;
    }
    CUresult increment(CUstream on) { return launch(kernel("increment"), 1, 1, on, data); }
    CUdeviceptr data = 0;
};

TEST_F(Order, the_legacy_stream_follows_blocking_streams) {
    const CUstream blocking = stream(CU_STREAM_DEFAULT);
    Spinner spinner(kernel("spin"), blocking);
    ASSERT_OK(increment(nullptr));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(nullptr));
    EXPECT_EQ(now(), 0u);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(nullptr));
    EXPECT_EQ(now(), 1u);
}

TEST_F(Order, blocking_streams_follow_the_legacy_stream) {
    const CUstream blocking = stream(CU_STREAM_DEFAULT);
    Spinner spinner(kernel("spin"), nullptr);
    ASSERT_OK(increment(blocking));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(blocking));
    EXPECT_EQ(now(), 0u);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(blocking));
    EXPECT_EQ(now(), 1u);
}

TEST_F(Order, non_blocking_streams_follow_nobody) {
    const CUstream free_stream = stream(CU_STREAM_NON_BLOCKING);
    Spinner spinner(kernel("spin"), nullptr);
    ASSERT_OK(increment(free_stream));
    ASSERT_OK(cu.cuStreamSynchronize(free_stream));
    EXPECT_EQ(now(), 1u);
    spinner.release();
}

TEST_F(Order, two_blocking_streams_are_apart) {
    const CUstream first = stream(CU_STREAM_DEFAULT), second = stream(CU_STREAM_DEFAULT);
    Spinner spinner(kernel("spin"), first);
    ASSERT_OK(increment(second));
    ASSERT_OK(cu.cuStreamSynchronize(second));
    EXPECT_EQ(now(), 1u);
    spinner.release();
}

TEST_F(Order, a_chain_through_the_legacy_stream_holds) {
    const CUstream first = stream(CU_STREAM_DEFAULT), second = stream(CU_STREAM_DEFAULT);
    Spinner spinner(kernel("spin"), first);
    ASSERT_OK(increment(nullptr));
    ASSERT_OK(increment(second));
    ASSERT_OK(increment(nullptr));
    ASSERT_OK(increment(first));
    EXPECT_EQ(now(), 0u);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    spinner.release();
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(now(), 4u);
}

TEST_F(Order, a_waiting_copy_of_the_legacy_stream_sees_blocking_work) {
    const CUstream blocking = stream(CU_STREAM_DEFAULT);
    for (int i = 0; i < 100; ++i) ASSERT_OK(increment(blocking));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 100u);
}

TEST_F(Order, the_per_thread_stream_is_one_of_the_blocking_streams) {
    Spinner spinner(kernel("spin"), CU_STREAM_PER_THREAD);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_PER_THREAD));
    ASSERT_OK(increment(CU_STREAM_LEGACY));
    EXPECT_EQ(now(), 0u);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    EXPECT_EQ(now(), 1u);
}

TEST_F(Order, threads_have_per_thread_streams_of_their_own) {
    Spinner spinner(kernel("spin"), CU_STREAM_PER_THREAD);
    const CUfunction function = kernel("increment");
    std::thread other([&] {
        EXPECT_OK(cu.cuCtxSetCurrent(context));
        EXPECT_OK(launch(function, 1, 1, CU_STREAM_PER_THREAD, data));
        EXPECT_OK(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
    });
    other.join();
    EXPECT_EQ(now(), 1u);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_PER_THREAD));
    spinner.release();
}

TEST_F(Order, per_thread_functions_take_stream_zero_as_the_threads_own) {
    const auto resolve = [](const char* name, auto* function) {
        void* address = nullptr;
        EXPECT_OK(
            cu.cuGetProcAddress_v2(name, &address, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
        std::memcpy(function, &address, sizeof address);
    };
    decltype(&::cuLaunchKernel) launch_own = nullptr;
    decltype(&::cuStreamQuery) query_own = nullptr;
    decltype(&::cuMemcpyDtoH_v2) copy_own = nullptr;
    resolve("cuLaunchKernel", &launch_own);
    resolve("cuStreamQuery", &query_own);
    resolve("cuMemcpyDtoH", &copy_own);
    const CUstream blocking = stream(CU_STREAM_DEFAULT);
    Spinner spinner(kernel("spin"), blocking);
    void* pointers[] = {&data};
    ASSERT_OK(launch_own(kernel("increment"), 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr));
    std::uint32_t word = 0;
    ASSERT_OK(copy_own(&word, data, 4)) << "does not follow the other stream";
    EXPECT_EQ(word, 1u);
    EXPECT_OK(query_own(nullptr));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(blocking));
    spinner.release();
}

// As a training loop: the same few bytes are read after each synchronisation, and now and then something changes them
// in between.
TEST_F(Order, reads_after_synchronisations_see_what_came_in_between) {
    const CUstream own = stream(CU_STREAM_NON_BLOCKING);
    const CUdeviceptr other = allocate(64);
    const auto read = [&](CUdeviceptr from) {
        std::uint32_t word = ~0u;
        EXPECT_OK(cu.cuMemcpyDtoH_v2(&word, from, 4));
        return word;
    };
    const auto set = [&](std::uint32_t value) { EXPECT_OK(launch(kernel("set_value"), 1, 1, own, data, value)); };
    for (std::uint32_t round = 0; round < 8; ++round) {
        set(round * 10);
        ASSERT_OK(cu.cuCtxSynchronize());
        EXPECT_EQ(read(data), round * 10);
        EXPECT_EQ(read(data), round * 10);
        set(round * 10 + 1);
        ASSERT_OK(cu.cuStreamSynchronize(own));
        EXPECT_EQ(read(data), round * 10 + 1) << "a launch in between";
        const std::uint32_t word = round * 10 + 2;
        ASSERT_OK(cu.cuCtxSynchronize());
        ASSERT_OK(cu.cuMemcpyHtoD_v2(data, &word, 4));
        EXPECT_EQ(read(data), word) << "a copy in between";
        ASSERT_OK(cu.cuCtxSynchronize());
        ASSERT_OK(cu.cuMemsetD32_v2(data, round * 10 + 3, 1));
        EXPECT_EQ(read(data), round * 10 + 3) << "a fill in between";
        ASSERT_OK(cu.cuMemsetD32_v2(other, round, 16));
        ASSERT_OK(cu.cuCtxSynchronize());
        EXPECT_EQ(read(other + 4), round) << "another place";
    }
    ASSERT_OK(cu.cuCtxSynchronize());
    std::thread([&] {
        ASSERT_OK(cu.cuCtxSetCurrent(context));
        set(99);
        ASSERT_OK(cu.cuStreamSynchronize(own));
    }).join();
    EXPECT_EQ(read(data), 99u) << "another thread's launch in between";
}
