// Symbols, events, streams, page-locked memory, errors, properties, attributes, occupancy.
#include <cstring>
#include <thread>
#include <vector>

#include "checks.h"

__constant__ float scale[4];
__device__ int counter;
__device__ float table[16] = {1, 2, 3};

__global__ void use_symbols(float* out) {
    out[threadIdx.x] = scale[threadIdx.x % 4] * table[threadIdx.x % 16];
    atomicAdd(&counter, 1);
}

__global__ void fill(int* out, int value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = value;
}

__global__ void spin(int* out, int rounds) {
    int value = *out;
    for (int i = 0; i < rounds; ++i) value = value * 1103515245 + 12345;
    *out = value;
}

void symbols() {
    const float factors[4] = {2, 3, 4, 5};
    CHECK(cudaMemcpyToSymbol(scale, factors, sizeof factors));
    const float last = 7;
    CHECK(cudaMemcpyToSymbol(scale, &last, sizeof last, 3 * sizeof(float)));
    float* out;
    CHECK(cudaMalloc(&out, 16 * sizeof(float)));
    use_symbols<<<1, 16>>>(out);
    float found[16];
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(found[0] == 2 && found[1] == 6 && found[2] == 12 && found[3] == 0);
    int count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 16);
    void* address;
    std::size_t size;
    CHECK(cudaGetSymbolAddress(&address, table));
    CHECK(cudaGetSymbolSize(&size, table));
    EXPECT(size == sizeof table);
    float entries[3];
    CHECK(cudaMemcpy(entries, address, sizeof entries, cudaMemcpyDeviceToHost));
    EXPECT(entries[2] == 3);
    EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(scale, factors, 32));
    EXPECT_ERROR(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(factors, factors, 4));
    EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(scale, factors, 4, 0, cudaMemcpyDeviceToHost));
    (void)cudaGetLastError();
}

void streams_and_events() {
    constexpr int n = 1 << 16;
    cudaStream_t stream, other;
    cudaEvent_t begin, end;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
    int *device, *host;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMallocHost(&host, n * sizeof(int)));
    CHECK(cudaEventRecord(begin, stream));
    fill<<<8, 128, 0, stream>>>(device, 41, n);
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamWaitEvent(other, end, 0));
    CHECK(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    for (int i = 0; i < n; ++i) EXPECT(host[i] == 41);
    CHECK(cudaEventSynchronize(end));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    EXPECT(ms >= 0);
    CHECK(cudaEventQuery(end));
    CHECK(cudaStreamQuery(stream));
    CHECK(cudaMemsetAsync(device, 1, n * sizeof(int), stream));
    CHECK(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(host[n - 1] == 0x01010101);
    unsigned flags = 9;
    CHECK(cudaStreamGetFlags(other, &flags));
    EXPECT(flags == cudaStreamNonBlocking);
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest <= least);
    EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(device));
    (void)cudaGetLastError();
}

void asynchronous_memory() {
    constexpr int n = 1000;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int* device;
    CHECK(cudaMallocAsync(&device, n * sizeof(int), stream));
    fill<<<4, 64, 0, stream>>>(device, 5, n);
    std::vector<int> host(n);
    CHECK(cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(device, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int value : host) EXPECT(value == 5);
    CHECK(cudaStreamDestroy(stream));
}

void errors() {
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice));
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaSuccess);
    int* device;
    CHECK(cudaMalloc(&device, 4));
    fill<<<1, 2048>>>(device, 1, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    fill<<<0, 32>>>(device, 1, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    fill<<<1, 32, 1 << 20>>>(device, 1, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT_ERROR(cudaErrorInvalidDevice, cudaSetDevice(99));
    EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&device, std::size_t(1) << 60));
    EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, device, 4, cudaMemcpyKind(9)));
    std::thread([] { EXPECT(cudaPeekAtLastError() == cudaSuccess); }).join();
    EXPECT(std::strcmp(cudaGetErrorName(cudaErrorInvalidPitchValue), "cudaErrorInvalidPitchValue") == 0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaError_t(99999)), "unrecognized error code") == 0);
    (void)cudaGetLastError();
}

void questions() {
    int count = 0, device = -1, runtime = 0, driver = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaGetDevice(&device));
    EXPECT(count == 1 && device == 0);
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    EXPECT(runtime / 1000 == CUDART_VERSION / 1000 && driver >= 12000);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(std::strstr(properties.name, "Weft") != nullptr);
    EXPECT(properties.warpSize == 32 && properties.major == 8 && properties.maxThreadsPerBlock == 1024);
    EXPECT(properties.maxGridSize[1] == 65535 && properties.unifiedAddressing == 1);
    std::size_t free_bytes, total_bytes;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    EXPECT(total_bytes == properties.totalGlobalMem && free_bytes <= total_bytes);
    int value;
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(value == properties.multiProcessorCount);
    char bus[20];
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    EXPECT(device == 0);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, fill));
    EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
    int blocks = 0, grid = 0, block = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
    EXPECT(blocks > 0);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill, 0, 0));
    EXPECT(grid > 0 && block > 0);
    CHECK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
    int* memory;
    CHECK(cudaMalloc(&memory, 4096));
    fill<<<1, 32, 60 * 1024>>>(memory, 3, 10);
    CHECK(cudaDeviceSynchronize());
    cudaPointerAttributes pointer;
    CHECK(cudaPointerGetAttributes(&pointer, memory + 5));
    EXPECT(pointer.type == cudaMemoryTypeDevice && pointer.device == 0 && pointer.devicePointer == memory + 5);
    CHECK(cudaPointerGetAttributes(&pointer, &value));
    EXPECT(pointer.type == cudaMemoryTypeUnregistered);
    void* pinned;
    CHECK(cudaHostAlloc(&pinned, 100, cudaHostAllocDefault));
    CHECK(cudaPointerGetAttributes(&pointer, pinned));
    EXPECT(pointer.type == cudaMemoryTypeHost && pointer.hostPointer == pinned);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(memory));
}

void launches() {
    int* device;
    CHECK(cudaMalloc(&device, 64 * sizeof(int)));
    int value = 12, n = 64, found = 0;
    void* arguments[] = {&device, &value, &n};
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&fill), dim3(1), dim3(64), arguments, 0, nullptr));
    CHECK(cudaMemcpy(&found, device + 63, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(found == 12);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(64);
    CHECK(cudaLaunchKernelEx(&config, fill, device, 13, 64));
    CHECK(cudaMemcpy(&found, device + 63, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(found == 13);
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&fill)));
    EXPECT(function != nullptr);
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&found, dim3(1), dim3(1), arguments, 0, nullptr));
    CHECK(cudaFree(device));
    (void)cudaGetLastError();
}

// Work of one thread's default stream is not held up by another thread's, and each thread waits for its own.
void threads() {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
        all.emplace_back([t] {
            int* device;
            CHECK(cudaMalloc(&device, 256 * sizeof(int)));
            for (int round = 0; round < 20; ++round) {
                fill<<<2, 128>>>(device, t * 100 + round, 256);
                int found[256];
                CHECK(cudaMemcpy(found, device, sizeof found, cudaMemcpyDeviceToHost));
                for (int value : found) EXPECT(value == t * 100 + round);
            }
            CHECK(cudaFree(device));
        });
    for (std::thread& thread : all) thread.join();
}

void reset() {
    int* device;
    CHECK(cudaMalloc(&device, 4));
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&device, 4));
    fill<<<1, 1>>>(device, 77, 1);
    int found = 0;
    CHECK(cudaMemcpy(&found, device, 4, cudaMemcpyDeviceToHost));
    EXPECT(found == 77);
    int count = -1;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 0);
}

int main() {
    symbols();
    streams_and_events();
    asynchronous_memory();
    errors();
    questions();
    launches();
    threads();
    reset();
    std::printf("ok\n");
}
