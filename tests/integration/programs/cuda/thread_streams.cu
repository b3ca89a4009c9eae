// Built with --default-stream per-thread: stream 0 is a stream of the calling thread, and does not wait for other threads' streams.
#include <thread>
#include <vector>

#include "checks.h"

__device__ float table[4] = {1, 2, 3, 4};

__global__ void fill(int* out, int value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

void work(int t) {
    constexpr int n = 4096;
    std::vector<int> host(n);
    int* device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    for (int round = 0; round < 10; ++round) {
        fill<<<n / 128, 128>>>(device, t * 1000 + round, n);
        CHECK(cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(cudaStreamSynchronize(0));
        for (int value : host) EXPECT(value == t * 1000 + round);
        CHECK(cudaMemset(device, 0xff, n * sizeof(int)));
        CHECK(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
        for (int value : host) EXPECT(value == -1);
    }
    float found[4];
    CHECK(cudaMemcpyFromSymbol(found, table, sizeof found));
    EXPECT(found[3] == 4);
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFree(device));
}

int main() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
    for (std::thread& thread : threads) thread.join();
    unsigned long long mine = 0, legacy = 0;
    CHECK(cudaStreamGetId(0, &mine));
    CHECK(cudaStreamGetId(cudaStreamLegacy, &legacy));
    EXPECT(mine != legacy);
    std::printf("ok\n");
}
