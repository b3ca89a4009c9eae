// Pitched memory and copies in two and three dimensions.
#include <cstring>
#include <vector>

#include "checks.h"

__global__ void add_one(int* rows, std::size_t pitch, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height) ++*reinterpret_cast<int*>(reinterpret_cast<char*>(rows) + y * pitch + x * sizeof(int));
}

void two_dimensions() {
    constexpr int width = 37, height = 11;
    std::vector<int> host(width * height), back(50 * height, -1);
    for (int i = 0; i < width * height; ++i) host[i] = i;
    int* device;
    std::size_t pitch;
    CHECK(cudaMallocPitch(&device, &pitch, width * sizeof(int), height));
    EXPECT(pitch >= width * sizeof(int) && pitch % 128 == 0);
    CHECK(cudaMemcpy2D(device, pitch, host.data(), width * sizeof(int), width * sizeof(int), height, cudaMemcpyHostToDevice));
    add_one<<<dim3(1, height), 64>>>(device, pitch, width, height);
    CHECK(cudaMemcpy2D(back.data(), 50 * sizeof(int), device, pitch, width * sizeof(int), height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < 50; ++x) EXPECT(back[y * 50 + x] == (x < width ? y * width + x + 1 : -1));

    int* packed;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&packed, width * height * sizeof(int)));
    CHECK(cudaMemcpy2DAsync(packed, width * sizeof(int), device, pitch, width * sizeof(int), height, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemcpyAsync(host.data(), packed, host.size() * sizeof(int), cudaMemcpyDefault, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < width * height; ++i) EXPECT(host[i] == i + 1);

    CHECK(cudaMemset2D(device, pitch, 0x11, 5 * sizeof(int), 2));
    CHECK(cudaMemset2DAsync(device, pitch, 0x22, sizeof(int), height, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy2D(host.data(), width * sizeof(int), device, pitch, width * sizeof(int), height, cudaMemcpyDefault));
    EXPECT(host[0] == 0x22222222 && host[1] == 0x11111111 && host[5] == 6 && host[width] == 0x22222222);
    EXPECT_ERROR(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 4, host.data(), 4, 8, 2, cudaMemcpyHostToDevice));
    CHECK(cudaFree(device));
    CHECK(cudaFree(packed));
    CHECK(cudaStreamDestroy(stream));
    (void)cudaGetLastError();
}

void three_dimensions() {
    constexpr int width = 7, height = 5, depth = 4;
    std::vector<int> host(width * height * depth), back(host.size());
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = int(i);
    const cudaExtent extent = make_cudaExtent(width * sizeof(int), height, depth);
    cudaPitchedPtr device;
    CHECK(cudaMalloc3D(&device, extent));
    cudaMemcpy3DParms up = {};
    up.srcPtr = make_cudaPitchedPtr(host.data(), width * sizeof(int), width, height);
    up.dstPtr = device;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&up));
    cudaMemcpy3DParms down = {};
    down.srcPtr = device;
    down.srcPos = make_cudaPos(sizeof(int), 1, 2);
    down.dstPtr = make_cudaPitchedPtr(back.data(), width * sizeof(int), width, height);
    down.extent = make_cudaExtent(3 * sizeof(int), 2, 2);
    down.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3DAsync(&down, 0));
    CHECK(cudaDeviceSynchronize());
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 2; ++y)
            for (int x = 0; x < 3; ++x)
                EXPECT(back[(z * height + y) * width + x] == ((z + 2) * height + y + 1) * width + x + 1);
    CHECK(cudaMemset3D(device, 0x33, make_cudaExtent(2 * sizeof(int), 2, depth)));
    down.srcPos = make_cudaPos(0, 0, 0);
    down.extent = extent;
    CHECK(cudaMemcpy3D(&down));
    EXPECT(back[0] == 0x33333333 && back[2] == 2 && back[2 * width] == 2 * width);
    EXPECT(back[3 * width * height + width + 1] == 0x33333333);
    CHECK(cudaFree(device.ptr));
}

int main() {
    two_dimensions();
    three_dimensions();
    std::printf("ok\n");
}
