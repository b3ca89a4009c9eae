// A failed assertion of a kernel is told on standard error, and its error stays.
#include <cassert>

#include "checks.h"

__global__ void check(int value) { assert(value == 1 && "must be one"); }

int main() {
    check<<<1, 1>>>(1);
    CHECK(cudaDeviceSynchronize());
    check<<<1, 1>>>(2);
    EXPECT_ERROR(cudaErrorAssert, cudaDeviceSynchronize());
    EXPECT(cudaGetLastError() == cudaErrorAssert && cudaGetLastError() == cudaErrorAssert);
    std::printf("ok\n");
}
