// Arrays and textures: points and linear filtering, addresses outside, linear memory; surfaces are not part of this.
#include <cmath>
#include <vector>

#include "checks.h"

__global__ void sample(cudaTextureObject_t texture, const float2* at, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

__global__ void fetch(cudaTextureObject_t texture, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<int>(texture, n - 1 - i);
}

float sample_one(cudaTextureObject_t texture, float x, float y) {
    float2 *at, where = make_float2(x, y);
    float *out, found;
    CHECK(cudaMalloc(&at, sizeof *at));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMemcpy(at, &where, sizeof where, cudaMemcpyHostToDevice));
    sample<<<1, 1>>>(texture, at, out, 1);
    CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(at));
    CHECK(cudaFree(out));
    return found;
}

void arrays() {
    constexpr int width = 8, height = 4;
    std::vector<float> texels(width * height), back(texels.size());
    for (int i = 0; i < width * height; ++i) texels[i] = float(i * i);
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, texels.data(), width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(back.data(), width * sizeof(float), array, 0, 0, width * sizeof(float), height, cudaMemcpyDeviceToHost));
    EXPECT(back == texels);
    cudaChannelFormatDesc found;
    cudaExtent extent;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&found, &extent, &flags, array));
    EXPECT(found.x == 32 && found.f == cudaChannelFormatKindFloat && extent.width == width && extent.height == height);

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t points, linear;
    CHECK(cudaCreateTextureObject(&points, &resource, &desc, nullptr));
    EXPECT(sample_one(points, 2.5f, 1.5f) == texels[width + 2]);
    EXPECT(sample_one(points, 2.9f, 1.1f) == texels[width + 2]);
    EXPECT(sample_one(points, -5.0f, 0.5f) == texels[0]);
    desc.filterMode = cudaFilterModeLinear;
    CHECK(cudaCreateTextureObject(&linear, &resource, &desc, nullptr));
    EXPECT(sample_one(linear, 2.5f, 1.5f) == texels[width + 2]);
    EXPECT(std::fabs(sample_one(linear, 3.0f, 1.5f) - (texels[width + 2] + texels[width + 3]) / 2) < 0.01f);
    CHECK(cudaDestroyTextureObject(points));
    CHECK(cudaDestroyTextureObject(linear));
    CHECK(cudaFreeArray(array));
}

void linear_memory() {
    constexpr int n = 100;
    std::vector<int> host(n), back(n);
    for (int i = 0; i < n; ++i) host[i] = 3 * i;
    int *device, *out;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMemcpy(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = n * sizeof(int);
    cudaTextureDesc desc = {};
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
    fetch<<<1, 128>>>(texture, out, n);
    CHECK(cudaMemcpy(back.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(back[i] == 3 * (n - 1 - i));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(device));
    CHECK(cudaFree(out));
}

int main() {
    arrays();
    linear_memory();
    std::printf("ok\n");
}
