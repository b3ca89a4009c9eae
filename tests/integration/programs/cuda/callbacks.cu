// Host functions and callbacks in stream order; a graph put together by hand, with changed parameters.
#include <atomic>
#include <vector>

#include "checks.h"

__global__ void add(int* data, int value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}

void host_functions() {
    static std::atomic<int> seen;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int *device, *pinned;
    CHECK(cudaMalloc(&device, sizeof(int)));
    CHECK(cudaMallocHost(&pinned, sizeof(int)));
    CHECK(cudaMemsetAsync(device, 0, sizeof(int), stream));
    add<<<1, 1, 0, stream>>>(device, 6, 1);
    CHECK(cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, [](void* data) { seen = *static_cast<int*>(data); }, pinned));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(seen == 6);
    const auto callback = [](cudaStream_t, cudaError_t error, void* data) {
        if (error == cudaSuccess) seen += *static_cast<int*>(data);
    };
    CHECK(cudaStreamAddCallback(stream, callback, pinned, 0));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(seen == 12);
    CHECK(cudaStreamDestroy(stream));
}

void by_hand() {
    constexpr int n = 500;
    std::vector<int> in(n, 7), out(n);
    int *device, value = 3, size = n;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    cudaGraph_t graph;
    cudaGraphNode_t up, kernel, down;
    cudaGraphExec_t exec;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, device, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    void* arguments[] = {&device, &value, &size};
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(&add);
    params.gridDim = dim3(4);
    params.blockDim = dim3(128);
    params.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &up, 1, &params));
    CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &kernel, 1, out.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    for (int found : out) EXPECT(found == 10);
    value = 20;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    for (int found : out) EXPECT(found == 27);
    cudaKernelNodeParams back = {};
    CHECK(cudaGraphKernelNodeGetParams(kernel, &back));
    EXPECT(back.func == params.func && back.blockDim.x == 128);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(device));
}

int main() {
    host_functions();
    by_hand();
    std::printf("ok\n");
}
