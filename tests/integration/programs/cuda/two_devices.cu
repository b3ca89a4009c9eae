// Two GPUs in one process: each device has its own memory, streams, copies of the program's variables; copies between them.
#include <cstring>
#include <thread>
#include <vector>

#include "checks.h"

__device__ int mark;

__global__ void set_mark(int value) { mark = value; }

__global__ void scale(float* data, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

int main() {
    constexpr int n = 1000;
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    float* data[2];
    std::vector<float> host(n);
    for (int device = 0; device < 2; ++device) {
        CHECK(cudaSetDevice(device));
        for (int i = 0; i < n; ++i) host[i] = float(i);
        CHECK(cudaMalloc(&data[device], n * sizeof(float)));
        CHECK(cudaMemcpy(data[device], host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        scale<<<(n + 127) / 128, 128>>>(data[device], float(device + 2), n);
        set_mark<<<1, 1>>>(device + 10);
        CHECK(cudaDeviceSynchronize());
    }
    for (int device = 0; device < 2; ++device) {
        CHECK(cudaSetDevice(device));
        int found = 0, current = -1;
        CHECK(cudaGetDevice(&current));
        EXPECT(current == device);
        CHECK(cudaMemcpyFromSymbol(&found, mark, sizeof found));
        EXPECT(found == device + 10);
        cudaPointerAttributes attributes;
        CHECK(cudaPointerGetAttributes(&attributes, data[device]));
        EXPECT(attributes.device == device);
    }
    CHECK(cudaMemcpyPeer(data[0], 0, data[1], 1, n * sizeof(float)));
    CHECK(cudaMemcpy(host.data(), data[0], n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(host[i] == 3.0f * float(i));
    // A thread begins with device 0, whatever the others chose.
    std::thread([] {
        int device = -1;
        CHECK(cudaGetDevice(&device));
        EXPECT(device == 0);
    }).join();
    int reaches = -1;
    CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 1));
    EXPECT(reaches == 0 || reaches == 1);
    cudaDeviceProp properties[2];
    CHECK(cudaGetDeviceProperties(&properties[0], 0));
    CHECK(cudaGetDeviceProperties(&properties[1], 1));
    EXPECT(std::memcmp(&properties[0].uuid, &properties[1].uuid, sizeof properties[0].uuid) != 0);
    std::printf("ok\n");
}
