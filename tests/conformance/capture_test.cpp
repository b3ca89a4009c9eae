#include <algorithm>
#include <atomic>
#include <thread>

#include "fixture.h"

class Captures : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (HasFatalFailure()) return;
        SKIP_WITHOUT(cuStreamBeginCapture_v2);
        own = stream();
    }
    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) {
        ASSERT_OK(cu.cuStreamBeginCapture_v2(own, mode));
    }
    // The graph of the capture as an executable.
    CUgraphExec end() {
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        EXPECT_OK(cu.cuStreamEndCapture(own, &graph));
        if (graph == nullptr) return nullptr;
        EXPECT_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        EXPECT_OK(cu.cuGraphDestroy(graph));
        return exec;
    }
    CUresult end_result() {
        CUgraph graph = nullptr;
        const CUresult result = cu.cuStreamEndCapture(own, &graph);
        EXPECT_EQ(graph == nullptr, result != CUDA_SUCCESS);
        if (graph != nullptr) {
            EXPECT_OK(cu.cuGraphDestroy(graph));
        }
        return result;
    }
    CUstream own = nullptr;
};

TEST_F(Captures, record_work_instead_of_doing_it) {
    const CUdeviceptr data = allocate(4 * 64);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 5, 64));
    ASSERT_OK(cu.cuCtxSynchronize());
    CUdeviceptr copy_of = allocate(4 * 64);
    std::vector<std::uint32_t> out(64, 0);
    const CUfunction step = kernel("step");
    begin();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    ASSERT_OK(cu.cuStreamIsCapturing(own, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ASSERT_OK(cu.cuMemsetD32Async(data, 1, 64, own));
    ASSERT_OK(launch(step, 1, 64, own, data, 64u));
    ASSERT_OK(cu.cuMemcpyDtoDAsync_v2(copy_of, data, 4 * 64, own));
    ASSERT_OK(launch(step, 1, 64, own, copy_of, 64u));
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(out.data(), copy_of, 4 * 64, own));
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    ASSERT_OK(cu.cuStreamIsCapturing(own, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 5u) << "nothing was done yet";
    for (int i = 0; i < 2; ++i) {
        out.assign(64, 0);
        ASSERT_OK(cu.cuGraphLaunch(exec, own));
        ASSERT_OK(cu.cuStreamSynchronize(own));
        EXPECT_EQ(out, std::vector<std::uint32_t>(64, 13));
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Captures, take_bytes_of_the_host_at_each_launch) {
    std::vector<std::uint32_t> in(3000);
    const CUdeviceptr data = allocate(4 * 3000);
    begin();
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(data, in.data(), 4 * 3000, own));
    const CUgraphExec exec = end();
    for (std::uint32_t round = 1; round < 4; ++round) {
        in.assign(3000, round);
        ASSERT_OK(cu.cuGraphLaunch(exec, own));
        ASSERT_OK(cu.cuStreamSynchronize(own));
        EXPECT_EQ(read<std::uint32_t>(data, 3000), in);
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Captures, spread_to_other_streams_by_events) {
    const CUdeviceptr data = allocate(8);
    const CUstream other = stream();
    const CUevent fork = event(CU_EVENT_DISABLE_TIMING), join = event(CU_EVENT_DISABLE_TIMING);
    const CUfunction increment = kernel("increment"), set = kernel("set_value");
    begin();
    ASSERT_OK(launch(set, 1, 1, own, data, 10u));
    ASSERT_OK(launch(set, 1, 1, own, data + 4, 20u));
    ASSERT_OK(cu.cuEventRecord(fork, own));
    ASSERT_OK(cu.cuStreamWaitEvent(other, fork, 0));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    ASSERT_OK(cu.cuStreamIsCapturing(other, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ASSERT_OK(launch(increment, 1, 5, other, data));
    ASSERT_OK(launch(increment, 1, 7, own, data + 4));
    ASSERT_OK(cu.cuEventRecord(join, other));
    ASSERT_OK(cu.cuStreamWaitEvent(own, join, 0));
    ASSERT_OK(launch(increment, 1, 100, own, data));
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    ASSERT_OK(cu.cuStreamIsCapturing(other, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    for (int i = 0; i < 2; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, 2), (std::vector<std::uint32_t>{115, 27}));
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Captures, tell_their_graph_and_its_newest_nodes) {
    const CUdeviceptr data = allocate(4);
    const CUfunction increment = kernel("increment");
    begin();
    ASSERT_OK(launch(increment, 1, 1, own, data));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    size_t count = 0;
    ASSERT_OK(cu.cuStreamGetCaptureInfo_v2(own, &status, &id, &graph, &nodes, &count));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_NE(id, 0u);
    ASSERT_EQ(count, 1u);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    ASSERT_OK(cu.cuGraphNodeGetType(nodes[0], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    CUgraphNode added = nullptr;
    ASSERT_OK(cu.cuGraphAddEmptyNode(&added, graph, nodes, 1));
    ASSERT_OK(cu.cuStreamUpdateCaptureDependencies(own, &added, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ASSERT_OK(launch(increment, 1, 1, own, data));
    CUgraph ended = nullptr;
    ASSERT_OK(cu.cuStreamEndCapture(own, &ended));
    EXPECT_EQ(ended, graph);
    ASSERT_OK(cu.cuGraphGetNodes(ended, nullptr, &count));
    EXPECT_EQ(count, 3u);
    EXPECT_OK(cu.cuGraphDestroy(ended));
}

TEST_F(Captures, record_host_functions_and_memory) {
    std::atomic<int> calls{0};
    const CUdeviceptr result = allocate(4);
    begin();
    CUdeviceptr temporary = 0;
    ASSERT_OK(cu.cuMemAllocAsync(&temporary, 1024, own));
    ASSERT_OK(launch(kernel("set_value"), 1, 1, own, temporary, 42u));
    ASSERT_OK(cu.cuMemcpyDtoDAsync_v2(result, temporary, 4, own));
    ASSERT_OK(cu.cuMemFreeAsync(temporary, own));
    ASSERT_OK(cu.cuLaunchHostFunc(own, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls));
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    EXPECT_EQ(calls.load(), 0);
    for (int i = 0; i < 3; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(calls.load(), 3);
    EXPECT_EQ(read<std::uint32_t>(result, 1)[0], 42u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Captures, take_graphs_in_as_children) {
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    begin();
    ASSERT_OK(launch(kernel("increment"), 1, 3, own, data));
    const CUgraphExec inner = end();
    begin();
    ASSERT_OK(cu.cuGraphLaunch(inner, own));
    ASSERT_OK(cu.cuGraphLaunch(inner, own));
    const CUgraphExec outer = end();
    ASSERT_NE(outer, nullptr);
    ASSERT_OK(cu.cuGraphLaunch(outer, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 6u);
    EXPECT_OK(cu.cuGraphExecDestroy(inner));
    EXPECT_OK(cu.cuGraphExecDestroy(outer));
}

TEST_F(Captures, copy_boxes) {
    const CUdeviceptr data = allocate(64 * 8);
    ASSERT_OK(cu.cuMemsetD8_v2(data, 0, 64 * 8));
    ASSERT_OK(cu.cuCtxSynchronize());
    std::vector<std::uint8_t> in = pattern(16 * 8, 3), out(20 * 8, 0);
    CUDA_MEMCPY2D up{}, down{};
    up.srcMemoryType = down.dstMemoryType = CU_MEMORYTYPE_HOST;
    up.dstMemoryType = down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    up.srcHost = in.data();
    up.srcPitch = 16;
    up.dstDevice = down.srcDevice = data;
    up.dstPitch = down.srcPitch = 64;
    down.dstHost = out.data();
    down.dstPitch = 20;
    up.WidthInBytes = down.WidthInBytes = 16;
    up.Height = down.Height = 8;
    begin();
    SKIP_IF_UNSUPPORTED(cu.cuMemcpy2DAsync_v2(&up, own));
    ASSERT_OK(cu.cuMemcpy2DAsync_v2(&down, own));
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    for (unsigned round = 0; round < 2; ++round) {
        const auto other = pattern(16 * 8, round + 10);
        std::copy(other.begin(), other.end(), in.begin());
        ASSERT_OK(cu.cuGraphLaunch(exec, own));
        ASSERT_OK(cu.cuStreamSynchronize(own));
        for (size_t y = 0; y < 8; ++y)
            for (size_t x = 0; x < 20; ++x) ASSERT_EQ(out[y * 20 + x], x < 16 ? in[y * 16 + x] : 0) << x << " " << y;
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Captures, end_where_they_began) {
    CUgraph graph = nullptr;
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamEndCapture(own, &graph));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              cu.cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
    begin();
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUstream other = stream();
    const CUevent fork = event();
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuEventRecord(fork, own));
    ASSERT_OK(cu.cuStreamWaitEvent(other, fork, 0));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cu.cuStreamEndCapture(other, &graph));
    ASSERT_OK(launch(kernel("increment"), 1, 1, other, data));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, end_result());
    EXPECT_OK(cu.cuStreamSynchronize(own)) << "an ordinary stream again";
}

TEST_F(Captures, end_in_the_thread_that_began_them) {
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CUresult elsewhere = CUDA_SUCCESS;
    std::thread([&] {
        cu.cuCtxSetCurrent(context);
        CUgraph graph = nullptr;
        elsewhere = cu.cuStreamEndCapture(own, &graph);
    }).join();
    EXPECT_EQ(elsewhere, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_OK(end_result());
}

TEST_F(Captures, are_spoilt_by_waiting_for_the_stream) {
    begin();
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamSynchronize(own));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    ASSERT_OK(cu.cuStreamIsCapturing(own, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    const CUdeviceptr data = allocate(4);
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch(kernel("increment"), 1, 1, own, data));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
}

TEST_F(Captures, are_spoilt_by_work_from_outside) {
    const CUevent outside = event();
    ASSERT_OK(cu.cuEventRecord(outside, stream()));
    begin();
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cu.cuStreamWaitEvent(own, outside, 0));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
}

TEST_F(Captures, do_not_mix) {
    const CUstream other = stream();
    const CUevent recorded = event();
    begin();
    ASSERT_OK(cu.cuEventRecord(recorded, own));
    ASSERT_OK(cu.cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_MERGE, cu.cuStreamWaitEvent(other, recorded, 0));
    CUgraph graph = nullptr;
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(other, &graph));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
}

TEST_F(Captures, of_blocking_streams_are_spoilt_by_the_legacy_stream) {
    own = stream(CU_STREAM_DEFAULT);
    const CUdeviceptr data = allocate(4);
    const CUfunction increment = kernel("increment");
    begin();
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, launch(increment, 1, 1, nullptr, data));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
    own = stream(CU_STREAM_NON_BLOCKING);
    begin();
    EXPECT_OK(launch(increment, 1, 1, nullptr, data));
    EXPECT_OK(end_result());
}

// Also when the bytes came along with the last synchronisation.
TEST_F(Captures, of_blocking_streams_are_spoilt_by_copies_that_wait) {
    own = stream(CU_STREAM_DEFAULT);
    const CUdeviceptr data = allocate(4);
    std::uint32_t word = 0;
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(cu.cuCtxSynchronize());
        ASSERT_OK(cu.cuMemcpyDtoH_v2(&word, data, 4));
    }
    begin();
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cu.cuMemcpyDtoH_v2(&word, data, 4));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
}

TEST_F(Captures, leave_events_that_cannot_be_asked) {
    const CUevent recorded = event();
    begin();
    ASSERT_OK(cu.cuEventRecord(recorded, own));
    EXPECT_EQ(CUDA_ERROR_CAPTURED_EVENT, cu.cuEventQuery(recorded));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
    ASSERT_OK(cu.cuEventRecord(recorded, own));
    EXPECT_OK(cu.cuEventSynchronize(recorded));
}

TEST_F(Captures, forbid_allocations_to_threads_that_have_not_relaxed) {
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUdeviceptr address = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ASSERT_OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(cu.cuMemAlloc_v2(&address, 1024));
    ASSERT_OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuMemAlloc_v2(&address, 1024));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_result());
}

TEST_F(Captures, go_into_graphs_that_exist) {
    SKIP_WITHOUT(cuStreamBeginCaptureToGraph);
    const CUdeviceptr data = allocate(4);
    CUgraph graph = nullptr;
    ASSERT_OK(cu.cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill{data, 0, 7, 4, 1, 1};
    CUgraphNode first = nullptr;
    ASSERT_OK(cu.cuGraphAddMemsetNode(&first, graph, nullptr, 0, &fill, context));
    ASSERT_OK(cu.cuStreamBeginCaptureToGraph(own, graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASSERT_OK(launch(kernel("increment"), 1, 2, own, data));
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 9u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}
