/* Eight threads share a context; each launches on its own stream, is timed by events, and checks its own numbers. */
#include <pthread.h>

#include "driver.h"
#include "kernels.h"

enum { kThreads = 8, kRounds = 100, kCount = 4096 };

struct work {
    CUcontext context;
    CUfunction step;
    unsigned number;
    float milliseconds;
    unsigned result;
};

static void *run(void *argument) {
    struct work *work = argument;
    CHECK(p_cuCtxSetCurrent(work->context));
    CUstream stream;
    CUevent start, end;
    CUdeviceptr data;
    CHECK(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(p_cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(p_cuEventCreate(&end, CU_EVENT_DEFAULT));
    CHECK(p_cuMemAlloc_v2(&data, kCount * 4));
    CHECK(p_cuMemsetD32Async(data, work->number, kCount, stream));
    CHECK(p_cuEventRecord(start, stream));
    unsigned expected = work->number, count = kCount;
    for (int round = 0; round < kRounds; ++round) {
        void *parameters[] = {&data, &count};
        CHECK(p_cuLaunchKernel(work->step, kCount / 128, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
        expected = expected * 3 + 1;
    }
    CHECK(p_cuEventRecord(end, stream));
    unsigned *words = malloc(kCount * 4);
    CHECK(p_cuMemcpyDtoHAsync_v2(words, data, kCount * 4, stream));
    CHECK(p_cuStreamSynchronize(stream));
    for (unsigned i = 0; i < kCount; ++i) EXPECT(words[i] == expected);
    CHECK(p_cuEventElapsedTime(&work->milliseconds, start, end));
    EXPECT(work->milliseconds > 0);
    work->result = words[0];
    free(words);
    CHECK(p_cuMemFree_v2(data));
    CHECK(p_cuEventDestroy_v2(start));
    CHECK(p_cuEventDestroy_v2(end));
    CHECK(p_cuStreamDestroy_v2(stream));
    return NULL;
}

int main(void) {
    load_driver();
    CHECK(p_cuInit(0));
    CUcontext context;
    CUmodule module;
    CUfunction step;
    CHECK(p_cuCtxCreate_v2(&context, 0, 0));
    CHECK(p_cuModuleLoadData(&module, kStepPtx));
    CHECK(p_cuModuleGetFunction(&step, module, "step"));
    struct work work[kThreads];
    pthread_t threads[kThreads];
    for (unsigned i = 0; i < kThreads; ++i) {
        work[i] = (struct work){context, step, i, 0, 0};
        EXPECT(pthread_create(&threads[i], NULL, run, &work[i]) == 0);
    }
    unsigned sum = 0;
    for (unsigned i = 0; i < kThreads; ++i) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
        sum += work[i].result;
    }
    CHECK(p_cuModuleUnload(module));
    CHECK(p_cuCtxDestroy_v2(context));
    printf("threads: %d threads, %d launches each, checksum %u\n", kThreads, kRounds, sum);
    return 0;
}
