#include <thread>

#include "fixture.h"

class Threads : public ContextTest {
  protected:
    static constexpr int kThreads = 8;
    template <typename Body>
    void in_threads(Body body) {
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i) {
            threads.emplace_back([this, body, i] {
                EXPECT_OK(cu.cuCtxSetCurrent(context));
                body(i);
            });
        }
        for (auto& thread : threads) thread.join();
    }
};

TEST_F(Threads, launch_on_streams_of_their_own) {
    const CUfunction step = kernel("step");
    in_threads([&](int number) {
        constexpr unsigned n = 256;
        CUdeviceptr data = 0;
        CUstream own = nullptr;
        EXPECT_OK(cu.cuMemAlloc_v2(&data, n * 4));
        EXPECT_OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
        EXPECT_OK(cu.cuMemsetD32Async(data, static_cast<unsigned>(number), n, own));
        auto expected = static_cast<std::uint32_t>(number);
        for (int round = 0; round < 200; ++round) {
            EXPECT_OK(launch(step, 1, 256, own, data, n));
            expected = expected * 3 + 1;
        }
        std::vector<std::uint32_t> words(n);
        EXPECT_OK(cu.cuMemcpyDtoHAsync_v2(words.data(), data, n * 4, own));
        EXPECT_OK(cu.cuStreamSynchronize(own));
        EXPECT_EQ(words, std::vector<std::uint32_t>(n, expected));
        EXPECT_OK(cu.cuStreamDestroy_v2(own));
        EXPECT_OK(cu.cuMemFree_v2(data));
    });
}

TEST_F(Threads, share_one_stream) {
    const CUfunction increment = kernel("increment");
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    const CUstream shared = stream();
    ASSERT_OK(cu.cuCtxSynchronize());
    in_threads([&](int) {
        for (int round = 0; round < 200; ++round) EXPECT_OK(launch(increment, 1, 1, shared, data));
    });
    ASSERT_OK(cu.cuStreamSynchronize(shared));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 200u * kThreads);
}

TEST_F(Threads, allocate_and_free) {
    const size_t before = free_bytes();
    in_threads([&](int number) {
        std::vector<std::pair<CUdeviceptr, size_t>> held;
        for (int round = 0; round < 200; ++round) {
            const size_t size = 1 + static_cast<size_t>((round * 7919 + number * 104729) % 100000);
            CUdeviceptr address = 0;
            EXPECT_OK(cu.cuMemAlloc_v2(&address, size));
            held.emplace_back(address, size);
            if (held.size() > 10) {
                EXPECT_OK(cu.cuMemFree_v2(held.front().first));
                held.erase(held.begin());
            }
        }
        for (const auto& [address, size] : held) EXPECT_OK(cu.cuMemFree_v2(address));
    });
    EXPECT_GE(free_bytes() + (4 << 20), before);
}

TEST_F(Threads, load_modules_at_once) {
    in_threads([&](int number) {
        for (int round = 0; round < 10; ++round) {
            CUmodule own = nullptr;
            CUfunction set = nullptr;
            CUdeviceptr out = 0;
            EXPECT_OK(cu.cuModuleLoadData(&own, kKernels));
            EXPECT_OK(cu.cuModuleGetFunction(&set, own, "set_value"));
            EXPECT_OK(cu.cuMemAlloc_v2(&out, 4));
            EXPECT_OK(launch(set, 1, 1, CU_STREAM_PER_THREAD, out, number));
            EXPECT_OK(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
            EXPECT_EQ(read<int>(out, 1)[0], number);
            EXPECT_OK(cu.cuMemFree_v2(out));
            EXPECT_OK(cu.cuModuleUnload(own));
        }
    });
}

TEST_F(Threads, have_contexts_of_their_own) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([this, i] {
            CUcontext own = nullptr;
            CUmodule loaded = nullptr;
            CUfunction set = nullptr;
            CUdeviceptr out = 0;
            EXPECT_OK(cu.cuCtxCreate_v2(&own, 0, device));
            EXPECT_OK(cu.cuModuleLoadData(&loaded, kKernels));
            EXPECT_OK(cu.cuModuleGetFunction(&set, loaded, "set_value"));
            EXPECT_OK(cu.cuMemAlloc_v2(&out, 4));
            EXPECT_OK(launch(set, 1, 1, nullptr, out, i));
            EXPECT_EQ(read<int>(out, 1)[0], i);
            EXPECT_OK(cu.cuCtxDestroy_v2(own));
        });
    }
    for (auto& thread : threads) thread.join();
}
