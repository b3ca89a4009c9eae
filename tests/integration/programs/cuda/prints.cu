// Text printed by a kernel is on standard output after the next synchronisation.
#include "checks.h"

__global__ void say(int value) {
    if (threadIdx.x == 3) printf("thread %d of block %d says %d and %.2f\n", threadIdx.x, blockIdx.x, value, 1.5);
}

int main() {
    say<<<1, 32>>>(42);
    CHECK(cudaDeviceSynchronize());
    std::printf("ok\n");
}
