// Separate compilation (-rdc=true): the kernel calls a function of another file, which the device linker finds.
#include "checks.h"

__device__ int twice(int value);
extern __device__ int offset;

__global__ void apply(int* data) { data[threadIdx.x] = twice(data[threadIdx.x]) + offset; }

int main() {
    int host[32], *device;
    for (int i = 0; i < 32; ++i) host[i] = i;
    CHECK(cudaMalloc(&device, sizeof host));
    CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    apply<<<1, 32>>>(device);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) EXPECT(host[i] == 2 * i + 100);
    std::printf("ok\n");
}
