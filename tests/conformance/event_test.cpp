#include <thread>

#include "fixture.h"

class Events : public ContextTest {};

TEST_F(Events, bad_arguments_are_refused) {
    CUevent made = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(nullptr, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&made, 0x80));
    SOFTWARE_GPU_ONLY();
    const auto junk = reinterpret_cast<CUevent>(0x1234567);
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventRecord(junk, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventQuery(junk));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventSynchronize(junk));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventDestroy_v2(junk));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamWaitEvent(nullptr, junk, 0));
}

TEST_F(Events, that_were_never_recorded_are_complete) {
    const CUevent own = event();
    EXPECT_OK(cu.cuEventQuery(own));
    EXPECT_OK(cu.cuEventSynchronize(own));
    EXPECT_OK(cu.cuStreamWaitEvent(stream(), own, 0));
    float milliseconds = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&milliseconds, own, own));
}

TEST_F(Events, can_be_asked_for_without_a_current_context) {
    const CUevent own = event();
    ASSERT_OK(cu.cuEventRecord(own, stream()));
    std::thread([&] {
        EXPECT_OK(cu.cuEventSynchronize(own));
        EXPECT_OK(cu.cuEventQuery(own));
    }).join();
}

TEST_F(Events, turn_complete_when_the_stream_gets_there) {
    const CUstream own = stream();
    const CUevent before = event(), after = event();
    ASSERT_OK(cu.cuEventRecord(before, own));
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(cu.cuEventRecord(after, own));
    EXPECT_TRUE(eventually([&] { return cu.cuEventQuery(before) == CUDA_SUCCESS; }));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuEventQuery(after));
    float milliseconds = 0;
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuEventElapsedTime(&milliseconds, before, after));
    spinner.release();
    ASSERT_OK(cu.cuEventSynchronize(after));
    EXPECT_OK(cu.cuEventQuery(after));
    ASSERT_OK(cu.cuEventElapsedTime(&milliseconds, before, after));
    EXPECT_GT(milliseconds, 0.0f);
}

TEST_F(Events, measure_work) {
    const CUstream own = stream();
    const CUevent start = event(), end = event();
    const unsigned n = 1 << 18;
    CUdeviceptr data = allocate(n * 4);
    ASSERT_OK(cu.cuEventRecord(start, own));
    for (int i = 0; i < 4; ++i) ASSERT_OK(launch(kernel("step"), n / 256, 256, own, data, n));
    ASSERT_OK(cu.cuEventRecord(end, own));
    ASSERT_OK(cu.cuEventSynchronize(end));
    float forward = 0, backward = 0;
    ASSERT_OK(cu.cuEventElapsedTime(&forward, start, end));
    ASSERT_OK(cu.cuEventElapsedTime(&backward, end, start));
    EXPECT_GT(forward, 0.0f);
    EXPECT_LT(forward, 60000.0f);
    EXPECT_FLOAT_EQ(backward, -forward);
}

TEST_F(Events, without_timing_have_no_time) {
    const CUevent first = event(CU_EVENT_DISABLE_TIMING), second = event();
    ASSERT_OK(cu.cuEventRecord(first, nullptr));
    ASSERT_OK(cu.cuEventRecord(second, nullptr));
    ASSERT_OK(cu.cuCtxSynchronize());
    float milliseconds = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&milliseconds, first, second));
}

TEST_F(Events, can_be_recorded_again) {
    const CUstream own = stream();
    const CUevent again = event();
    ASSERT_OK(cu.cuEventRecord(again, own));
    ASSERT_OK(cu.cuEventSynchronize(again));
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(cu.cuEventRecord(again, own));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuEventQuery(again)) << "the last record counts";
    spinner.release();
    ASSERT_OK(cu.cuEventSynchronize(again));
}

TEST_F(Events, make_another_stream_wait) {
    const CUstream first = stream(), second = stream();
    const CUevent reached = event(CU_EVENT_DISABLE_TIMING);
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    Spinner spinner(kernel("spin"), first);
    ASSERT_OK(launch(kernel("set_value"), 1, 1, first, data, 10u));
    ASSERT_OK(cu.cuEventRecord(reached, first));
    ASSERT_OK(cu.cuStreamWaitEvent(second, reached, 0));
    ASSERT_OK(launch(kernel("increment"), 1, 1, second, data));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    ASSERT_OK(cu.cuEventRecord(reached, stream())) << "a later record changes nothing for those who wait already";
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(second));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 11u);
}

TEST_F(Events, chains_across_streams_hold) {
    constexpr int kStreams = 6, kRounds = 30;
    CUstream streams[kStreams];
    CUevent events[kStreams];
    for (int i = 0; i < kStreams; ++i) {
        streams[i] = stream();
        events[i] = event(CU_EVENT_DISABLE_TIMING);
    }
    const unsigned n = 64;
    CUdeviceptr data = allocate(n * 4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 1, n));
    ASSERT_OK(cu.cuCtxSynchronize());
    std::uint32_t expected = 1;
    for (int i = 0; i < kStreams * kRounds; ++i) {
        const CUstream on = streams[i % kStreams];
        if (i > 0) {
            ASSERT_OK(cu.cuStreamWaitEvent(on, events[(i - 1) % kStreams], 0));
        }
        ASSERT_OK(launch(kernel("step"), 2, 32, on, data, n));
        ASSERT_OK(cu.cuEventRecord(events[i % kStreams], on));
        expected = expected * 3 + 1;
    }
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(data, n), std::vector<std::uint32_t>(n, expected));
}

TEST_F(Events, can_be_destroyed_while_awaited) {
    const CUstream first = stream(), second = stream();
    Spinner spinner(kernel("spin"), first);
    CUevent reached = event();
    ASSERT_OK(cu.cuEventRecord(reached, first));
    ASSERT_OK(cu.cuStreamWaitEvent(second, reached, 0));
    ASSERT_OK(cu.cuEventDestroy_v2(reached));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(second));
}

TEST_F(Events, of_the_default_stream) {
    const CUevent own = event();
    CUdeviceptr data = allocate(4);
    ASSERT_OK(launch(kernel("set_value"), 1, 1, nullptr, data, 3u));
    ASSERT_OK(cu.cuEventRecord(own, nullptr));
    ASSERT_OK(cu.cuEventSynchronize(own));
    EXPECT_OK(cu.cuStreamQuery(nullptr));
    if (cu.cuEventRecordWithFlags != nullptr) {
        EXPECT_OK(cu.cuEventRecordWithFlags(own, nullptr, 0));
    }
    EXPECT_OK(cu.cuEventSynchronize(own));
}
