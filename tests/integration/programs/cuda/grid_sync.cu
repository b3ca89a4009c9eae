// A cooperative grid whose blocks wait for each other, and groups of threads. Compiled as the headers of cooperative groups compile
// to: the barrier's memory is named by two environment registers.
#include "checks.h"

__device__ unsigned* grid_barrier() {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    return reinterpret_cast<unsigned*>(static_cast<unsigned long long>(high) << 32 | low) + 1;
}

// The top bit turns over when the last block has arrived.
__device__ void wait_for_grid(volatile unsigned* barrier) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned arrived = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        const unsigned before = atomicAdd(const_cast<unsigned*>(barrier), arrived);
        while (((*barrier ^ before) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

__global__ void rotate(int* data, int n) {
    unsigned* barrier = grid_barrier();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;
    for (int round = 0; round < 3; ++round) {
        wait_for_grid(barrier);
        const int next = data[(i + 1) % n];
        wait_for_grid(barrier);
        data[i] = next;
    }
}

int main() {
    constexpr int blocks = 8, threads = 64;
    int n = blocks * threads, supported = 0, most = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    EXPECT(supported == 1);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, rotate, threads, 0));
    int* device;
    static int host[blocks * threads];
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    void* arguments[] = {&device, &n};
    for (int round = 0; round < 2; ++round) {
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&rotate), blocks, threads, arguments, 0, 0));
        CHECK(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; ++i) EXPECT(host[i] == (i + 3) % n);
    }
    EXPECT_ERROR(cudaErrorCooperativeLaunchTooLarge,
                 cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&rotate), 1 << 20, threads, arguments, 0, 0));
    std::printf("ok\n");
}
