#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "fixture.h"

class Graphs : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (HasFatalFailure()) return;
        SKIP_WITHOUT(cuGraphAddKernelNode_v2);
        SKIP_IF_UNSUPPORTED(cu.cuGraphCreate(&graph, 0));
    }
    void TearDown() override {
        if (graph != nullptr) {
            EXPECT_OK(cu.cuGraphDestroy(graph));
        }
        ContextTest::TearDown();
    }
    CUDA_KERNEL_NODE_PARAMS kernel_parameters(const char* name, unsigned threads, void** pointers) {
        CUDA_KERNEL_NODE_PARAMS parameters{};
        parameters.func = kernel(name);
        parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
        parameters.blockDimX = threads;
        parameters.blockDimY = parameters.blockDimZ = 1;
        parameters.kernelParams = pointers;
        return parameters;
    }
    template <typename... Arguments>
    CUgraphNode add(const char* name, unsigned threads, const std::vector<CUgraphNode>& after, Arguments... arguments) {
        void* pointers[] = {&arguments..., nullptr};
        const auto parameters = kernel_parameters(name, threads, pointers);
        CUgraphNode node = nullptr;
        EXPECT_OK(cu.cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &parameters));
        return node;
    }
    CUgraphNode fill(CUdeviceptr to, unsigned value, size_t words, const std::vector<CUgraphNode>& after = {}) {
        CUDA_MEMSET_NODE_PARAMS parameters{};
        parameters.dst = to;
        parameters.value = value;
        parameters.elementSize = 4;
        parameters.width = words;
        parameters.height = 1;
        CUgraphNode node = nullptr;
        EXPECT_OK(cu.cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &parameters, context));
        return node;
    }
    static CUDA_MEMCPY3D flat(CUmemorytype to_type, const void* to, CUmemorytype from_type, const void* from,
                              size_t bytes) {
        CUDA_MEMCPY3D copy{};
        copy.dstMemoryType = to_type;
        copy.srcMemoryType = from_type;
        if (to_type == CU_MEMORYTYPE_HOST) {
            copy.dstHost = const_cast<void*>(to);
        } else {
            copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
        }
        if (from_type == CU_MEMORYTYPE_HOST) {
            copy.srcHost = from;
        } else {
            copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
        }
        copy.WidthInBytes = bytes;
        copy.Height = copy.Depth = 1;
        return copy;
    }
    CUgraphNode copy(const CUDA_MEMCPY3D& parameters, const std::vector<CUgraphNode>& after = {}) {
        CUgraphNode node = nullptr;
        EXPECT_OK(cu.cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &parameters, context));
        return node;
    }
    CUgraphExec instantiate() {
        CUgraphExec exec = nullptr;
        EXPECT_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        return exec;
    }
    static const void* device(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

    CUgraph graph = nullptr;
};

TEST_F(Graphs, of_kernels_keep_their_order_at_every_launch) {
    const CUdeviceptr data = allocate(4 * 64);
    const CUgraphNode first = fill(data, 1, 64);
    const CUgraphNode second = add("step", 64, {first}, data, 64u);
    add("step", 64, {second}, data, 64u);
    const CUgraphExec exec = instantiate();
    const CUstream own = stream();
    for (int i = 0; i < 3; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    for (const std::uint32_t value : read<std::uint32_t>(data, 64)) EXPECT_EQ(value, (1u * 3 + 1) * 3 + 1);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, launches_follow_the_work_of_the_stream_and_one_another) {
    const CUdeviceptr data = allocate(4);
    const CUdeviceptr copy_of = allocate(4);
    const CUgraphNode up = add("increment", 1, {}, data);
    copy(flat(CU_MEMORYTYPE_DEVICE, device(copy_of), CU_MEMORYTYPE_DEVICE, device(data), 4), {up});
    const CUgraphExec exec = instantiate();
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    const CUstream one = stream(), other = stream();
    ASSERT_OK(launch(kernel("set_value"), 1, 1, one, data, 100u));
    for (int i = 0; i < 50; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, one));
    for (int i = 0; i < 50; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, other));
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(copy_of, 1)[0], 200u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, copy_to_and_from_the_host_at_each_launch) {
    const size_t count = 100'000;  // more than one frame's worth
    std::vector<std::uint32_t> in(count), out(count);
    const CUdeviceptr data = allocate(count * 4);
    const CUgraphNode first = copy(flat(CU_MEMORYTYPE_DEVICE, device(data), CU_MEMORYTYPE_HOST, in.data(), count * 4));
    const CUgraphNode middle = add("increment", 7, {first}, data);
    copy(flat(CU_MEMORYTYPE_HOST, out.data(), CU_MEMORYTYPE_DEVICE, device(data), count * 4), {middle});
    const CUgraphExec exec = instantiate();
    const CUstream own = stream();
    for (std::uint32_t round = 1; round <= 3; ++round) {
        for (size_t i = 0; i < count; ++i) in[i] = round * 1000003u + static_cast<std::uint32_t>(i);
        ASSERT_OK(cu.cuGraphLaunch(exec, own));
        ASSERT_OK(cu.cuStreamSynchronize(own));
        in[0] += 7;
        ASSERT_EQ(in, out) << round;
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, copy_page_locked_memory_too) {
    auto* words = pinned<std::uint32_t>(4096);
    const CUdeviceptr data = allocate(4096 * 4);
    const CUgraphNode first = copy(flat(CU_MEMORYTYPE_DEVICE, device(data), CU_MEMORYTYPE_HOST, words, 2048 * 4));
    const CUgraphNode middle = add("increment", 3, {first}, data);
    copy(flat(CU_MEMORYTYPE_HOST, words + 2048, CU_MEMORYTYPE_DEVICE, device(data), 2048 * 4), {middle});
    const CUgraphExec exec = instantiate();
    for (std::uint32_t round = 1; round <= 3; ++round) {
        for (std::uint32_t i = 0; i < 2048; ++i) words[i] = round + i;
        ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
        ASSERT_OK(cu.cuCtxSynchronize());
        EXPECT_EQ(words[2048], round + 3);
        EXPECT_EQ(words[2048 + 2047], round + 2047);
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, call_host_functions_between_their_nodes) {
    struct State {
        std::uint32_t seen = 0;
        std::vector<std::uint32_t> all;
    } state;
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    ASSERT_OK(cu.cuCtxSynchronize());
    const CUgraphNode up = add("increment", 5, {}, data);
    const CUgraphNode down = copy(flat(CU_MEMORYTYPE_HOST, &state.seen, CU_MEMORYTYPE_DEVICE, device(data), 4), {up});
    CUDA_HOST_NODE_PARAMS parameters{[](void* of_call) {
                                         auto* told = static_cast<State*>(of_call);
                                         told->all.push_back(told->seen);
                                     },
                                     &state};
    CUgraphNode host = nullptr;
    ASSERT_OK(cu.cuGraphAddHostNode(&host, graph, &down, 1, &parameters));
    add("increment", 1, {host}, data);
    const CUgraphExec exec = instantiate();
    const CUstream own = stream();
    for (int i = 0; i < 3; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(state.all, (std::vector<std::uint32_t>{5, 11, 17}));
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, nodes_of_executables_can_be_changed_between_launches) {
    const CUdeviceptr data = allocate(16);
    const CUgraphNode fills = fill(data, 7, 4);
    const CUgraphNode sets = add("set_value", 1, {fills}, data, 1u);
    const CUgraphNode copies =
        copy(flat(CU_MEMORYTYPE_DEVICE, device(data + 8), CU_MEMORYTYPE_DEVICE, device(data), 4), {sets});
    const CUgraphExec exec = instantiate();
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 20; ++i) {
        CUdeviceptr to = data + (i % 2) * 4;
        void* pointers[] = {&to, &i};
        const auto parameters = kernel_parameters("set_value", 1, pointers);
        ASSERT_OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, sets, &parameters));
        ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    }
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(data, 4), (std::vector<std::uint32_t>{7, 19, 7, 7}));
    CUDA_MEMSET_NODE_PARAMS other{};
    other.dst = data;
    other.value = 9;
    other.elementSize = 4;
    other.width = 3;
    other.height = 1;
    ASSERT_OK(cu.cuGraphExecMemsetNodeSetParams(exec, fills, &other, context));
    const auto further = flat(CU_MEMORYTYPE_DEVICE, device(data + 12), CU_MEMORYTYPE_DEVICE, device(data + 4), 4);
    ASSERT_OK(cu.cuGraphExecMemcpyNodeSetParams(exec, copies, &further, context));
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 4), (std::vector<std::uint32_t>{9, 19, 9, 19}));
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, changes_do_not_reach_launches_that_wait) {
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    CUdeviceptr log = allocate(8);
    const CUgraphNode sets = add("set_value", 1, {}, log, 1u);
    const CUgraphExec exec = instantiate();
    const CUstream own = stream();
    Spinner spinner(kernel("spin"), own);
    ASSERT_OK(cu.cuGraphLaunch(exec, own));
    CUdeviceptr second = log + 4;
    std::uint32_t value = 2;
    void* pointers[] = {&second, &value};
    const auto parameters = kernel_parameters("set_value", 1, pointers);
    ASSERT_OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, sets, &parameters));
    ASSERT_OK(cu.cuGraphLaunch(exec, own));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(log, 2), (std::vector<std::uint32_t>{1, 2}));
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, changes_do_not_reach_launches_behind_a_host_function) {
    std::atomic<bool> may_end{false};
    const CUdeviceptr log = allocate(8);
    CUDA_HOST_NODE_PARAMS waits{
        [](void* flag) { eventually([&] { return static_cast<std::atomic<bool>*>(flag)->load(); }); }, &may_end};
    CUgraphNode host = nullptr;
    ASSERT_OK(cu.cuGraphAddHostNode(&host, graph, nullptr, 0, &waits));
    const CUgraphNode sets = add("set_value", 1, {host}, log, 1u);
    const CUgraphExec exec = instantiate();
    const CUstream one = stream(), other = stream();
    ASSERT_OK(cu.cuGraphLaunch(exec, one));
    CUdeviceptr second = log + 4;
    std::uint32_t value = 2;
    void* pointers[] = {&second, &value};
    const auto parameters = kernel_parameters("set_value", 1, pointers);
    ASSERT_OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, sets, &parameters));
    ASSERT_OK(cu.cuGraphLaunch(exec, other));
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(other)) << "launches of a graph follow one another";
    may_end = true;
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(log, 2), (std::vector<std::uint32_t>{1, 2}));
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, nodes_can_be_switched_off) {
    SKIP_WITHOUT(cuGraphNodeSetEnabled);
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    const CUgraphNode one = add("increment", 1, {}, data);
    add("increment", 10, {one}, data);
    const CUgraphExec exec = instantiate();
    ASSERT_OK(cu.cuGraphNodeSetEnabled(exec, one, 0));
    unsigned enabled = 9;
    ASSERT_OK(cu.cuGraphNodeGetEnabled(exec, one, &enabled));
    EXPECT_EQ(enabled, 0u);
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 10u);
    ASSERT_OK(cu.cuGraphNodeSetEnabled(exec, one, 1));
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 21u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, children_run_in_the_place_of_their_node) {
    const CUdeviceptr data = allocate(4);
    CUgraph whole = nullptr;
    ASSERT_OK(cu.cuGraphCreate(&whole, 0));
    std::swap(graph, whole);  // the child is built first
    std::swap(graph, whole);
    const CUgraphNode in_child = add("step", 1, {}, data, 1u);
    add("step", 1, {in_child}, data, 1u);
    const CUgraph child = graph;
    graph = whole;
    const CUgraphNode first = fill(data, 2, 1);
    CUgraphNode node = nullptr;
    ASSERT_OK(cu.cuGraphAddChildGraphNode(&node, graph, &first, 1, child));
    add("increment", 1, {node}, data);
    CUgraph inner = nullptr;
    ASSERT_OK(cu.cuGraphChildGraphNodeGetGraph(node, &inner));
    EXPECT_NE(inner, child);
    size_t count = 0;
    ASSERT_OK(cu.cuGraphGetNodes(inner, nullptr, &count));
    EXPECT_EQ(count, 2u);
    ASSERT_OK(cu.cuGraphDestroy(child));
    const CUgraphExec exec = instantiate();
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], (2u * 3 + 1) * 3 + 1 + 1);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, record_and_wait_for_events) {
    const CUdeviceptr data = allocate(4);
    const CUevent done = event(), start = event();
    CUgraphNode waits = nullptr, records = nullptr;
    ASSERT_OK(cu.cuGraphAddEventWaitNode(&waits, graph, nullptr, 0, start));
    const CUgraphNode up = add("increment", 4, {waits}, data);
    ASSERT_OK(cu.cuGraphAddEventRecordNode(&records, graph, &up, 1, done));
    CUevent found = nullptr;
    ASSERT_OK(cu.cuGraphEventRecordNodeGetEvent(records, &found));
    EXPECT_EQ(found, done);
    const CUgraphExec exec = instantiate();
    const CUstream own = stream(), before = stream(), after = stream();
    ASSERT_OK(launch(kernel("set_value"), 1, 1, before, data, 1u));
    ASSERT_OK(cu.cuEventRecord(start, before));
    ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamWaitEvent(after, done, 0));
    ASSERT_OK(launch(kernel("step"), 1, 1, after, data, 1u));
    ASSERT_OK(cu.cuStreamSynchronize(after));
    EXPECT_OK(cu.cuEventQuery(done));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 5u * 3 + 1);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, can_be_asked_what_they_are_made_of) {
    const CUdeviceptr data = allocate(4);
    CUgraphNode join = nullptr;
    const CUgraphNode a = add("increment", 1, {}, data), b = add("increment", 2, {}, data);
    const std::vector<CUgraphNode> both{a, b};
    ASSERT_OK(cu.cuGraphAddEmptyNode(&join, graph, both.data(), 2));
    size_t count = 0;
    ASSERT_OK(cu.cuGraphGetNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 3u);
    std::vector<CUgraphNode> nodes(5, join);
    count = 5;
    ASSERT_OK(cu.cuGraphGetNodes(graph, nodes.data(), &count));
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(nodes[4], nullptr);
    ASSERT_OK(cu.cuGraphGetRootNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 2u);
    CUgraphNode from[2], to[2];
    count = 2;
    ASSERT_OK(cu.cuGraphGetEdges(graph, from, to, &count));
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(to[0], join);
    ASSERT_OK(cu.cuGraphNodeGetDependencies(join, from, &count));
    EXPECT_EQ(from[0], a);
    EXPECT_EQ(from[1], b);
    ASSERT_OK(cu.cuGraphNodeGetDependentNodes(a, nullptr, &count));
    EXPECT_EQ(count, 1u);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_HOST;
    ASSERT_OK(cu.cuGraphNodeGetType(join, &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
    ASSERT_OK(cu.cuGraphRemoveDependencies(graph, &a, &join, 1));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphRemoveDependencies(graph, &a, &join, 1));
    ASSERT_OK(cu.cuGraphAddDependencies(graph, &a, &b, 1));
    ASSERT_OK(cu.cuGraphGetRootNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 1u);
    CUDA_KERNEL_NODE_PARAMS parameters{};
    ASSERT_OK(cu.cuGraphKernelNodeGetParams_v2(b, &parameters));
    EXPECT_EQ(parameters.func, kernel("increment"));
    EXPECT_EQ(parameters.blockDimX, 2u);
    EXPECT_EQ(*static_cast<CUdeviceptr*>(parameters.kernelParams[0]), data);
    ASSERT_OK(cu.cuGraphDestroyNode(join));
    ASSERT_OK(cu.cuGraphGetNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 2u);
}

TEST_F(Graphs, circles_are_refused) {
    const CUdeviceptr data = allocate(4);
    const CUgraphNode a = add("increment", 1, {}, data), b = add("increment", 2, {a}, data);
    if (cu.cuGraphAddDependencies(graph, &b, &a, 1) != CUDA_SUCCESS) return;  // a driver may find it here
    CUgraphExec exec = nullptr;
    EXPECT_NE(CUDA_SUCCESS, cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

TEST_F(Graphs, bad_arguments_are_refused) {
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr data = allocate(4);
    void* pointers[] = {&data};
    auto parameters = kernel_parameters("increment", 1, pointers);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddKernelNode_v2(nullptr, graph, nullptr, 0, &parameters));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphCreate(nullptr, 0));
    SOFTWARE_GPU_ONLY();
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&node, nullptr, nullptr, 0, &parameters));
    parameters.blockDimX = 5000;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &parameters));
    CUDA_MEMSET_NODE_PARAMS beyond{data, 0, 0, 4, 1000, 1};
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &beyond, context));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cu.cuGraphInstantiateWithFlags(&exec, reinterpret_cast<CUgraph>(0x5000000000abcdefull), 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGraphLaunch(nullptr, nullptr));
}

TEST_F(Graphs, clones_are_graphs_of_their_own) {
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    const CUgraphNode one = add("increment", 1, {}, data);
    CUgraph clone = nullptr;
    ASSERT_OK(cu.cuGraphClone(&clone, graph));
    CUgraphNode twin = nullptr;
    ASSERT_OK(cu.cuGraphNodeFindInClone(&twin, one, clone));
    EXPECT_NE(twin, one);
    CUdeviceptr to = data;
    void* pointers[] = {&to};
    const auto parameters = kernel_parameters("increment", 32, pointers);
    ASSERT_OK(cu.cuGraphKernelNodeSetParams_v2(twin, &parameters));
    const CUgraphExec exec = instantiate();
    CUgraphExec exec_of_clone = nullptr;
    ASSERT_OK(cu.cuGraphInstantiateWithFlags(&exec_of_clone, clone, 0));
    ASSERT_OK(cu.cuGraphDestroy(clone));
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    ASSERT_OK(cu.cuGraphLaunch(exec_of_clone, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 33u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
    EXPECT_OK(cu.cuGraphExecDestroy(exec_of_clone));
}

TEST_F(Graphs, executables_take_over_a_graph_of_the_same_shape) {
    SKIP_WITHOUT(cuGraphExecUpdate_v2);
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    const CUgraphNode one = add("increment", 1, {}, data);
    add("increment", 1, {one}, data);
    const CUgraphExec exec = instantiate();
    ASSERT_OK(cu.cuGraphDestroy(graph));
    ASSERT_OK(cu.cuGraphCreate(&graph, 0));
    const CUgraphNode again = add("increment", 20, {}, data);
    const CUgraphNode last = add("increment", 3, {again}, data);
    CUgraphExecUpdateResultInfo info{};
    ASSERT_OK(cu.cuGraphExecUpdate_v2(exec, graph, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 23u);
    add("increment", 3, {last}, data);
    EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(exec, graph, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, have_memory_of_their_own) {
    SKIP_WITHOUT(cuGraphAddMemAllocNode);
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.poolProps.location.id = 0;
    parameters.bytesize = 4096;
    CUgraphNode allocates = nullptr, frees = nullptr;
    ASSERT_OK(cu.cuGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &parameters));
    ASSERT_NE(parameters.dptr, 0u);
    const CUdeviceptr result = allocate(4);
    const CUgraphNode sets = add("set_value", 1, {allocates}, parameters.dptr, 77u);
    const CUgraphNode out =
        copy(flat(CU_MEMORYTYPE_DEVICE, device(result), CU_MEMORYTYPE_DEVICE, device(parameters.dptr), 4), {sets});
    ASSERT_OK(cu.cuGraphAddMemFreeNode(&frees, graph, &out, 1, parameters.dptr));
    const CUgraphExec exec = instantiate();
    for (int i = 0; i < 2; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(read<std::uint32_t>(result, 1)[0], 77u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}

TEST_F(Graphs, are_drawn) {
    SKIP_WITHOUT(cuGraphDebugDotPrint);
    const CUdeviceptr data = allocate(4);
    const CUgraphNode one = fill(data, 1, 1);
    add("increment", 1, {one}, data);
    char path[] = "/tmp/weft-graph-XXXXXX";
    const int descriptor = mkstemp(path);
    ASSERT_GE(descriptor, 0);
    EXPECT_OK(cu.cuGraphDebugDotPrint(graph, path, 0));
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::remove(path);
    EXPECT_EQ(text.find("digraph"), 0u);
    EXPECT_NE(text.find("->"), std::string::npos);
}

TEST_F(Graphs, keep_objects_of_the_program_alive) {
    SKIP_WITHOUT(cuUserObjectCreate);
    std::atomic<int> ended{0};
    CUuserObject object = nullptr;
    ASSERT_OK(cu.cuUserObjectCreate(
        &object, &ended, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, 1,
        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASSERT_OK(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    const CUdeviceptr data = allocate(4);
    add("increment", 1, {}, data);
    const CUgraphExec exec = instantiate();
    ASSERT_OK(cu.cuGraphDestroy(graph));
    graph = nullptr;
    EXPECT_EQ(ended.load(), 0);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
    EXPECT_TRUE(eventually([&] { return ended.load() == 1; }));
}

TEST_F(Graphs, of_many_nodes_are_launched_often) {
    const CUdeviceptr data = allocate(4);
    ASSERT_OK(cu.cuMemsetD32_v2(data, 0, 1));
    std::vector<CUgraphNode> last;
    for (int i = 0; i < 300; ++i) last = {add("increment", 1, last, data)};
    const CUgraphExec exec = instantiate();
    const CUstream own = stream();
    for (int i = 0; i < 20; ++i) ASSERT_OK(cu.cuGraphLaunch(exec, own));
    ASSERT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(read<std::uint32_t>(data, 1)[0], 6000u);
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
}
