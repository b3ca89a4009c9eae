// Vector add, tiled matmul, reduction, warp shuffle, histogram: the kernels that everybody writes first.
#include <cmath>
#include <vector>

#include "checks.h"

template <typename T>
__global__ void add(const T* a, const T* b, T* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

template <typename T>
void vector_add(int n) {
    std::vector<T> a(n), b(n), c(n);
    for (int i = 0; i < n; ++i) a[i] = T(i), b[i] = T(2 * i);
    T *da, *db, *dc;
    CHECK(cudaMalloc(&da, n * sizeof(T)));
    CHECK(cudaMalloc(&db, n * sizeof(T)));
    CHECK(cudaMalloc(&dc, n * sizeof(T)));
    CHECK(cudaMemcpy(da, a.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, n * sizeof(T), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(c[i] == T(3 * i));
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
}

constexpr int kTile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[kTile][kTile], tb[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n / kTile; ++t) {
        ta[threadIdx.y][threadIdx.x] = a[row * n + t * kTile + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(t * kTile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < kTile; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

void matmul() {
    constexpr int n = 64;
    std::vector<float> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; ++i) a[i] = float(i % 7), b[i] = float(i % 5);
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, sizeof(float) * n * n));
    CHECK(cudaMalloc(&db, sizeof(float) * n * n));
    CHECK(cudaMalloc(&dc, sizeof(float) * n * n));
    CHECK(cudaMemcpy(da, a.data(), sizeof(float) * n * n, cudaMemcpyDefault));
    CHECK(cudaMemcpy(db, b.data(), sizeof(float) * n * n, cudaMemcpyDefault));
    multiply<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(da, db, dc, n);
    CHECK(cudaMemcpy(c.data(), dc, sizeof(float) * n * n, cudaMemcpyDefault));
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            float sum = 0;
            for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
            EXPECT(c[row * n + column] == sum);
        }
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
}

__global__ void reduce(const int* in, int* out, int n) {
    extern __shared__ int partial[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, partial[0]);
}

__global__ void warp_sum(const float* in, float* out) {
    float value = in[blockIdx.x * 32 + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x == 0) out[blockIdx.x] = value;
}

__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

void sums() {
    constexpr int n = 5000;
    std::vector<int> in(n);
    int expected = 0, found = 0;
    for (int i = 0; i < n; ++i) expected += in[i] = i * 7 % 1000;
    int *din, *dout;
    CHECK(cudaMalloc(&din, sizeof(int) * n));
    CHECK(cudaMalloc(&dout, sizeof(int)));
    CHECK(cudaMemset(dout, 0, sizeof(int)));
    CHECK(cudaMemcpy(din, in.data(), sizeof(int) * n, cudaMemcpyHostToDevice));
    reduce<<<(n + 127) / 128, 128, 128 * sizeof(int)>>>(din, dout, n);
    CHECK(cudaMemcpy(&found, dout, sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(found == expected);

    std::vector<float> lanes(8 * 32), totals(8);
    for (int i = 0; i < 8 * 32; ++i) lanes[i] = float(i);
    float *dlanes, *dtotals;
    CHECK(cudaMalloc(&dlanes, lanes.size() * sizeof(float)));
    CHECK(cudaMalloc(&dtotals, totals.size() * sizeof(float)));
    CHECK(cudaMemcpy(dlanes, lanes.data(), lanes.size() * sizeof(float), cudaMemcpyHostToDevice));
    warp_sum<<<8, 32>>>(dlanes, dtotals);
    CHECK(cudaMemcpy(totals.data(), dtotals, totals.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int block = 0; block < 8; ++block) EXPECT(totals[block] == float(32 * 32 * block + 31 * 16));
}

void counts() {
    constexpr int n = 20000;
    std::vector<unsigned char> in(n);
    std::vector<unsigned> expected(256), found(256);
    for (int i = 0; i < n; ++i) ++expected[in[i] = static_cast<unsigned char>(i * i % 251)];
    unsigned char* din;
    unsigned* dbins;
    CHECK(cudaMalloc(&din, n));
    CHECK(cudaMalloc(&dbins, 256 * sizeof(unsigned)));
    CHECK(cudaMemset(dbins, 0, 256 * sizeof(unsigned)));
    CHECK(cudaMemcpy(din, in.data(), n, cudaMemcpyHostToDevice));
    histogram<<<8, 256>>>(din, dbins, n);
    CHECK(cudaMemcpy(found.data(), dbins, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
    EXPECT(found == expected);
}

int main(int count, char**) {
    if (count > 1) return 0;
    vector_add<float>(1000);
    vector_add<double>(1 << 16);
    matmul();
    sums();
    counts();
    std::printf("ok\n");
}
