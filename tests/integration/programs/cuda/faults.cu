// Errors that stay: after a kernel's illegal access every call of the device fails, until it is reset.
#include <thread>

#include "checks.h"

__device__ int counter = 3;

__global__ void write_to(int* address) { *address = 1; }
__global__ void count() { ++counter; }

int main() {
    int* device;
    CHECK(cudaMalloc(&device, 4));
    write_to<<<1, 1>>>(reinterpret_cast<int*>(0x10));
    CHECK(cudaGetLastError());
    EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    int* other;
    EXPECT_ERROR(cudaErrorIllegalAddress, cudaMalloc(&other, 4));
    EXPECT_ERROR(cudaErrorIllegalAddress, cudaMemcpy(device, &device, 4, cudaMemcpyHostToDevice));
    count<<<1, 1>>>();
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    std::thread([] { EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress); }).join();
    CHECK(cudaDeviceReset());
    EXPECT(cudaGetLastError() == cudaSuccess);
    count<<<1, 1>>>();
    int found = 0;
    CHECK(cudaMemcpyFromSymbol(&found, counter, sizeof found));
    EXPECT(found == 4);
    std::printf("ok\n");
}
