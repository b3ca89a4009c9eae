// Managed memory, and page-locked memory that kernels reach.
#include "checks.h"

__global__ void double_all(int* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}

void managed_memory() {
    constexpr int n = 5000;
    int* values;
    CHECK(cudaMallocManaged(&values, n * sizeof(int)));
    for (int i = 0; i < n; ++i) values[i] = i;
    double_all<<<(n + 127) / 128, 128>>>(values, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) EXPECT(values[i] == 2 * i);
    values[7] = 100;
    double_all<<<(n + 127) / 128, 128>>>(values, n);
    CHECK(cudaDeviceSynchronize());
    EXPECT(values[7] == 200 && values[8] == 32);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, values));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    CHECK(cudaFree(values));
    int concurrent = -1;
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    EXPECT(concurrent == 0);
}

void mapped_memory() {
    constexpr int n = 300;
    int *host, *device;
    CHECK(cudaHostAlloc(&host, n * sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&device, host, 0));
    for (int i = 0; i < n; ++i) host[i] = i + 1;
    double_all<<<3, 100>>>(device, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) EXPECT(host[i] == 2 * i + 2);
    CHECK(cudaFreeHost(host));
}

int main() {
    managed_memory();
    mapped_memory();
    std::printf("ok\n");
}
