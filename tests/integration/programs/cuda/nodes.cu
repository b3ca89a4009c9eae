// Graphs put together by hand from every kind of node, asked about, cloned, nested and updated.
#include <cstring>

#include "checks.h"

__constant__ int factors[4];

__global__ void add(int* data, int value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}

__global__ void read_factors(int* out) { out[threadIdx.x] = factors[threadIdx.x]; }

constexpr int n = 100;
int calls, step = 3, host[n];
int* device;

void count(void* data) { calls += *static_cast<int*>(data); }

struct Nodes {
    cudaGraphNode_t fill, kernel, copy, call, record;
};

cudaKernelNodeParams kernel_params(void** arguments) {
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(&add);
    params.gridDim = dim3(1);
    params.blockDim = dim3(128);
    params.kernelParams = arguments;
    return params;
}

Nodes add_nodes(cudaGraph_t graph, void** arguments, cudaEvent_t event) {
    Nodes nodes;
    cudaMemsetParams fill = {};
    fill.dst = device;
    fill.elementSize = sizeof(int);
    fill.width = n;
    fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&nodes.fill, graph, nullptr, 0, &fill));
    const cudaKernelNodeParams kernel = kernel_params(arguments);
    CHECK(cudaGraphAddKernelNode(&nodes.kernel, graph, &nodes.fill, 1, &kernel));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(device, sizeof host, n, 1);
    copy.dstPtr = make_cudaPitchedPtr(host, sizeof host, n, 1);
    copy.extent = make_cudaExtent(sizeof host, 1, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaGraphAddMemcpyNode(&nodes.copy, graph, &nodes.kernel, 1, &copy));
    const cudaHostNodeParams call = {count, &step};
    CHECK(cudaGraphAddHostNode(&nodes.call, graph, &nodes.copy, 1, &call));
    CHECK(cudaGraphAddEventRecordNode(&nodes.record, graph, &nodes.call, 1, event));
    return nodes;
}

void ask(cudaGraph_t graph, const Nodes& nodes) {
    std::size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 5);
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    EXPECT(count == 4);
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(nodes.call, &type));
    EXPECT(type == cudaGraphNodeTypeHost);
    cudaMemcpy3DParms copy;
    CHECK(cudaGraphMemcpyNodeGetParams(nodes.copy, &copy));
    EXPECT(copy.extent.width == sizeof host && copy.kind == cudaMemcpyDeviceToHost && copy.dstPtr.ptr == host);
    cudaMemsetParams fill;
    CHECK(cudaGraphMemsetNodeGetParams(nodes.fill, &fill));
    EXPECT(fill.width == n && fill.dst == device);
    cudaGraphNode_t before;
    count = 1;
    CHECK(cudaGraphNodeGetDependencies(nodes.kernel, &before, nullptr, &count));
    EXPECT(count == 1 && before == nodes.fill);
}

void launch(cudaGraphExec_t exec, int value, int counted) {
    std::memset(host, 0xff, sizeof host);
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    for (int found : host) EXPECT(found == value);
    EXPECT(calls == counted);
}

void symbols() {
    const int values[4] = {1, 2, 3, 4};
    int found[4];
    cudaGraph_t graph;
    cudaGraphNode_t up;
    cudaGraphExec_t exec;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&up, graph, nullptr, 0, factors, values, sizeof values, 0, cudaMemcpyHostToDevice));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    read_factors<<<1, 4>>>(device);
    CHECK(cudaMemcpy(found, device, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(std::memcmp(found, values, sizeof values) == 0);
}

int main() {
    int value = 5, size = n;
    CHECK(cudaMalloc(&device, sizeof host));
    void* arguments[] = {&device, &value, &size};
    cudaGraph_t graph, copy, outer;
    cudaEvent_t event;
    cudaGraphExec_t exec, nested;
    cudaGraphNode_t child, last;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaGraphCreate(&graph, 0));
    const Nodes nodes = add_nodes(graph, arguments, event);
    ask(graph, nodes);
    CHECK(cudaGraphClone(&copy, graph));
    CHECK(cudaGraphInstantiate(&exec, copy, 0));
    CHECK(cudaGraphUpload(exec, 0));
    launch(exec, 5, 3);
    CHECK(cudaEventQuery(event));
    value = 8;
    const cudaKernelNodeParams changed = kernel_params(arguments);
    CHECK(cudaGraphKernelNodeSetParams(nodes.kernel, &changed));
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    launch(exec, 8, 6);
    CHECK(cudaGraphCreate(&outer, 0));
    CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
    CHECK(cudaGraphAddEmptyNode(&last, outer, &child, 1));
    CHECK(cudaGraphInstantiate(&nested, outer, 0));
    launch(nested, 8, 9);
    symbols();
    std::printf("ok\n");
}
