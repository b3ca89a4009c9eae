#include <atomic>

#include "fixture.h"

class Streams : public ContextTest {};

TEST_F(Streams, keep_what_they_were_made_with) {
    CUstream made = nullptr;
    int least = 0, greatest = 0;
    ASSERT_OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    ASSERT_OK(cu.cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, greatest));
    int priority = 99;
    unsigned flags = 99;
    CUcontext of = nullptr;
    EXPECT_OK(cu.cuStreamGetPriority(made, &priority));
    EXPECT_EQ(priority, greatest);
    EXPECT_OK(cu.cuStreamGetFlags(made, &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cu.cuStreamGetCtx(made, &of));
    EXPECT_EQ(of, context);
    EXPECT_OK(cu.cuStreamDestroy_v2(made));
    ASSERT_OK(cu.cuStreamCreateWithPriority(&made, 0, -1000));
    EXPECT_OK(cu.cuStreamGetPriority(made, &priority));
    EXPECT_EQ(priority, greatest) << "cut to the range";
    EXPECT_OK(cu.cuStreamDestroy_v2(made));
}

TEST_F(Streams, have_distinct_ids) {
    SKIP_WITHOUT(cuStreamGetId);
    unsigned long long first = 0, second = 0;
    EXPECT_OK(cu.cuStreamGetId(stream(), &first));
    EXPECT_OK(cu.cuStreamGetId(stream(), &second));
    EXPECT_NE(first, second);
}

TEST_F(Streams, bad_arguments_are_refused) {
    CUstream made = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamCreate(nullptr, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamCreate(&made, 0x80));
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamSynchronize(reinterpret_cast<CUstream>(0x1234567)));
    made = stream();
    EXPECT_OK(cu.cuStreamDestroy_v2(made));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamQuery(made));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamDestroy_v2(made));
}

TEST_F(Streams, the_default_ones_answer_questions) {
    for (CUstream each : {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
        int priority = 99;
        EXPECT_OK(cu.cuStreamGetPriority(each, &priority));
        EXPECT_EQ(priority, 0);
        EXPECT_OK(cu.cuStreamQuery(each));
        EXPECT_OK(cu.cuStreamSynchronize(each));
    }
}

TEST_F(Streams, are_not_capturing) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_OK(cu.cuStreamIsCapturing(stream(), &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Streams, tell_when_they_are_done) {
    const CUstream own = stream();
    EXPECT_OK(cu.cuStreamQuery(own));
    Spinner spinner(kernel("spin"), own);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(own));
    spinner.release();
    EXPECT_TRUE(eventually([&] { return cu.cuStreamQuery(own) == CUDA_SUCCESS; }));
}

TEST_F(Streams, of_the_context_are_all_waited_for) {
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    for (int i = 0; i < 8; ++i) ASSERT_OK(launch(kernel("increment"), 10, 32, stream(), data));
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 8u * 320);
}

TEST_F(Streams, destroyed_ones_finish_their_work) {
    CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    const CUstream own = stream();
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(launch(kernel("increment"), 1, 32, own, data));
    ASSERT_OK(cu.cuStreamDestroy_v2(own));
    spinner.release();
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 32u);
}

TEST_F(Streams, a_kernel_that_waits_does_not_hold_others_up) {
    const CUstream waiting = stream(), other = stream();
    auto* result = pinned<std::uint32_t>(1);
    CUdeviceptr data = allocate(4);
    const CUfunction set = kernel("set_value");
    ASSERT_OK(launch(set, 1, 1, other, data, 0u));
    ASSERT_OK(cu.cuStreamSynchronize(other));
    Spinner spinner(kernel("spin"), waiting);
    ASSERT_OK(launch(set, 1, 1, other, data, 9u));
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(result, data, 4, other));
    ASSERT_OK(cu.cuStreamSynchronize(other));
    EXPECT_EQ(*result, 9u);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(waiting));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(waiting));
}

TEST_F(Streams, many_waiting_kernels_are_released_by_one_that_comes_last) {
    CUdeviceptr flag = allocate(4);
    const CUfunction spin = kernel("spin"), set = kernel("set_value");
    ASSERT_OK(launch(set, 1, 1, nullptr, flag, 1u));
    ASSERT_OK(launch(spin, 1, 1, nullptr, flag));
    ASSERT_OK(launch(set, 1, 1, nullptr, flag, 0u));
    ASSERT_OK(cu.cuCtxSynchronize());
    for (int i = 0; i < 6; ++i) ASSERT_OK(launch(spin, 1, 32, stream(), flag));
    ASSERT_OK(launch(set, 1, 1, stream(), flag, 1u));
    EXPECT_OK(cu.cuCtxSynchronize());
}

class HostFunctions : public ContextTest {};

TEST_F(HostFunctions, run_in_stream_order) {
    SKIP_WITHOUT(cuLaunchHostFunc);
    struct State {
        std::uint32_t* seen;
        std::uint32_t value_at_call;
        std::atomic<int> calls{0};
    } state{pinned<std::uint32_t>(1), 0};
    CUdeviceptr data = allocate(4);
    const CUstream own = stream();
    *state.seen = 0;
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(launch(kernel("set_value"), 1, 1, own, data, 31u));
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(state.seen, data, 4, own));
    const auto function = [](void* data_of_call) {
        auto* of_call = static_cast<State*>(data_of_call);
        of_call->value_at_call = *of_call->seen;
        ++of_call->calls;
    };
    SKIP_IF_UNSUPPORTED(cu.cuLaunchHostFunc(own, function, &state));
    EXPECT_EQ(state.calls.load(), 0);
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(state.calls.load(), 1);
    EXPECT_EQ(state.value_at_call, 31u);
}

TEST_F(HostFunctions, later_work_waits_for_them) {
    SKIP_WITHOUT(cuLaunchHostFunc);
    struct State {
        std::uint32_t* word;
    } state{pinned<std::uint32_t>(1)};
    *state.word = 1;
    CUdeviceptr data = allocate(4);
    const CUstream own = stream();
    SKIP_IF_UNSUPPORTED(
        cu.cuLaunchHostFunc(own, [](void* of_call) { *static_cast<State*>(of_call)->word = 2; }, &state));
    ASSERT_OK(cu.cuMemcpyHtoDAsync_v2(data, state.word, 4, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 2u);
}

TEST_F(HostFunctions, callbacks_are_told_the_status) {
    struct State {
        std::atomic<int> calls{0};
        CUresult status = CUDA_ERROR_UNKNOWN;
        CUstream stream = nullptr;
    } state;
    const CUstream own = stream();
    const auto callback = [](CUstream of, CUresult status, void* of_call) {
        auto* told = static_cast<State*>(of_call);
        told->status = status;
        told->stream = of;
        ++told->calls;
    };
    SKIP_IF_UNSUPPORTED(cu.cuStreamAddCallback(own, callback, &state, 0));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(state.calls.load(), 1);
    EXPECT_EQ(state.status, CUDA_SUCCESS);
    EXPECT_EQ(state.stream, own);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamAddCallback(own, callback, &state, 1));
}

TEST_F(HostFunctions, run_one_after_the_other_in_the_order_of_the_stream) {
    struct State {
        std::vector<int> seen;
    } state;
    struct Call {
        State* state;
        int number;
    };
    std::vector<Call> calls;
    for (int i = 0; i < 200; ++i) calls.push_back({&state, i});
    const CUstream own = stream();
    for (Call& call : calls) {
        SKIP_IF_UNSUPPORTED(cu.cuLaunchHostFunc(
            own,
            [](void* data) {
                auto* one = static_cast<Call*>(data);
                one->state->seen.push_back(one->number);
            },
            &call));
    }
    ASSERT_OK(cu.cuStreamSynchronize(own));
    ASSERT_EQ(state.seen.size(), calls.size());
    for (int i = 0; i < 200; ++i) EXPECT_EQ(state.seen[static_cast<size_t>(i)], i);
}

TEST_F(HostFunctions, that_wait_hold_up_their_stream_only) {
    struct State {
        std::atomic<bool> may_end{false};
        std::atomic<bool> has_begun{false};
    } state;
    const CUstream waiting = stream(), other = stream();
    const CUdeviceptr data = allocate(8);
    const CUfunction set = kernel("set_value");
    SKIP_IF_UNSUPPORTED(cu.cuLaunchHostFunc(
        waiting,
        [](void* of_call) {
            auto* told = static_cast<State*>(of_call);
            told->has_begun = true;
            eventually([&] { return told->may_end.load(); });
        },
        &state));
    ASSERT_OK(launch(set, 1, 1, waiting, data, 5u));
    ASSERT_OK(launch(set, 1, 1, other, data + 4, 6u));
    ASSERT_OK(cu.cuStreamSynchronize(other));
    EXPECT_TRUE(eventually([&] { return state.has_begun.load(); }));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(waiting));
    std::uint32_t second = 0;
    ASSERT_OK(cu.cuMemcpyDtoHAsync_v2(&second, data + 4, 4, other));
    ASSERT_OK(cu.cuStreamSynchronize(other));
    EXPECT_EQ(second, 6u);
    state.may_end = true;
    ASSERT_OK(cu.cuStreamSynchronize(waiting));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 5u);
}

TEST_F(HostFunctions, must_not_call_the_driver) {
    struct State {
        CUresult set = CUDA_SUCCESS, allocate = CUDA_SUCCESS, query = CUDA_SUCCESS;
        CUcontext context = nullptr;
        CUevent event = nullptr;
    } state;
    state.context = context;
    state.event = event();
    const CUstream own = stream();
    SKIP_IF_UNSUPPORTED(cu.cuLaunchHostFunc(
        own,
        [](void* of_call) {
            auto* told = static_cast<State*>(of_call);
            CUdeviceptr address = 0;
            told->set = cu.cuCtxSetCurrent(told->context);
            told->allocate = cu.cuMemAlloc_v2(&address, 256);
            told->query = cu.cuEventQuery(told->event);
        },
        &state));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, state.allocate);
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, state.set);
    EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, state.query);
}

TEST_F(HostFunctions, events_behind_them_wait) {
    std::atomic<bool> may_end{false};
    const CUstream own = stream(), other = stream();
    const CUevent done = event();
    const CUdeviceptr data = allocate(4);
    SKIP_IF_UNSUPPORTED(cu.cuLaunchHostFunc(
        own, [](void* flag) { eventually([&] { return static_cast<std::atomic<bool>*>(flag)->load(); }); }, &may_end));
    ASSERT_OK(launch(kernel("set_value"), 1, 1, own, data, 5u));
    ASSERT_OK(cu.cuEventRecord(done, own));
    ASSERT_OK(cu.cuStreamWaitEvent(other, done, 0));
    ASSERT_OK(launch(kernel("increment"), 1, 1, other, data));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuEventQuery(done));
    may_end = true;
    ASSERT_OK(cu.cuStreamSynchronize(other));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 6u);
}

TEST_F(HostFunctions, pending_ones_are_run_before_the_context_is_synchronised) {
    std::atomic<int> calls{0};
    for (int i = 0; i < 8; ++i)
        SKIP_IF_UNSUPPORTED(
            cu.cuLaunchHostFunc(stream(), [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls));
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(calls.load(), 8);
}

class MemoryOperations : public ContextTest {};

TEST_F(MemoryOperations, a_stream_waits_for_a_value_that_another_writes) {
    SKIP_WITHOUT(cuStreamWaitValue32_v2);
    CUdeviceptr flag = allocate(4), data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(flag, 0, 1));
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    const CUstream waiting = stream(), writing = stream();
    SKIP_IF_UNSUPPORTED(cu.cuStreamWaitValue32_v2(waiting, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
    ASSERT_OK(launch(kernel("increment"), 1, 1, waiting, data));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(waiting));
    ASSERT_OK(cu.cuStreamWriteValue32_v2(writing, flag, 7, 0));
    ASSERT_OK(cu.cuStreamSynchronize(waiting));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 1u);
}

TEST_F(MemoryOperations, a_write_is_ordered_in_its_stream) {
    SKIP_WITHOUT(cuStreamWriteValue32_v2);
    const CUdeviceptr words = allocate(8);
    ASSERT_OK(cu.cuMemsetD32_v2(words, 0, 2));
    SKIP_IF_UNSUPPORTED(cu.cuStreamWriteValue32_v2(nullptr, words + 4, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
    const auto found = read<std::uint32_t>(words, 2);
    EXPECT_EQ(found[0], 0u);
    EXPECT_EQ(found[1], 7u);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamWriteValue32_v2(nullptr, words + 2, 7, 0));
}

TEST_F(MemoryOperations, wide_values_work_too) {
    SKIP_WITHOUT(cuStreamWaitValue64_v2);
    SKIP_WITHOUT(cuStreamWriteValue64_v2);
    const CUdeviceptr word = allocate(8);
    ASSERT_OK(cu.cuMemsetD8_v2(word, 0, 8));
    ASSERT_OK(cu.cuCtxSynchronize());
    const CUstream waiting = stream();
    SKIP_IF_UNSUPPORTED(cu.cuStreamWaitValue64_v2(waiting, word, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(waiting));
    ASSERT_OK(cu.cuStreamWriteValue64_v2(stream(), word, 1ull << 40, 0));
    ASSERT_OK(cu.cuStreamSynchronize(waiting));
    EXPECT_EQ(read<std::uint64_t>(word, 1)[0], 1ull << 40);
}

TEST_F(MemoryOperations, a_batch_is_done_in_order) {
    SKIP_WITHOUT(cuStreamBatchMemOp_v2);
    const CUdeviceptr words = allocate(8);
    ASSERT_OK(cu.cuMemsetD32_v2(words, 0, 2));
    CUstreamBatchMemOpParams operations[3] = {};
    operations[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words, {1}, 0, 0};
    operations[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, words, {1}, CU_STREAM_WAIT_VALUE_EQ, 0};
    operations[2].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 4, {2}, 0, 0};
    SKIP_IF_UNSUPPORTED(cu.cuStreamBatchMemOp_v2(nullptr, 3, operations, 0));
    const auto found = read<std::uint32_t>(words, 2);
    EXPECT_EQ(found[0], 1u);
    EXPECT_EQ(found[1], 2u);
    operations[1].waitValue.address = words + 1;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuStreamBatchMemOp_v2(nullptr, 3, operations, 0));
}

TEST_F(Streams, attributes_can_be_set_and_copied) {
    SKIP_WITHOUT(cuStreamSetAttribute);
    const CUstream one = stream(), other = stream();
    CUstreamAttrValue value{};
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    SKIP_IF_UNSUPPORTED(cu.cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    ASSERT_OK(cu.cuStreamCopyAttributes(other, one));
    value = {};
    ASSERT_OK(cu.cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_YIELD);
}
