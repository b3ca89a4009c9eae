/* Every direction of copy, pageable and page-locked, waiting and in a stream, for small and large sizes. */
#include "driver.h"

static unsigned state = 1;
static unsigned char next_byte(void) {
    state = state * 1664525u + 1013904223u;
    return (unsigned char)(state >> 24);
}

static unsigned long check(size_t size, CUstream stream) {
    unsigned char *pageable = malloc(size), *back = malloc(size), *locked, *locked_back;
    void *memory;
    CHECK(p_cuMemHostAlloc(&memory, size, 0));
    locked = memory;
    CHECK(p_cuMemHostAlloc(&memory, size, 0));
    locked_back = memory;
    CUdeviceptr first, second;
    CHECK(p_cuMemAlloc_v2(&first, size));
    CHECK(p_cuMemAlloc_v2(&second, size));
    unsigned long sum = 0;
    for (size_t i = 0; i < size; ++i) {
        pageable[i] = next_byte();
        locked[i] = next_byte();
        sum += pageable[i] + locked[i];
    }
    /* waiting: pageable -> first -> second -> pageable */
    CHECK(p_cuMemcpyHtoD_v2(first, pageable, size));
    CHECK(p_cuMemcpyDtoD_v2(second, first, size));
    CHECK(p_cuMemcpyDtoH_v2(back, second, size));
    EXPECT(memcmp(pageable, back, size) == 0);
    /* in a stream: page-locked -> first -> second -> page-locked */
    CHECK(p_cuMemcpyHtoDAsync_v2(first, locked, size, stream));
    CHECK(p_cuMemcpyDtoDAsync_v2(second, first, size, stream));
    CHECK(p_cuMemcpyDtoHAsync_v2(locked_back, second, size, stream));
    CHECK(p_cuStreamSynchronize(stream));
    EXPECT(memcmp(locked, locked_back, size) == 0);
    /* in a stream: pageable, changed right after the call */
    CHECK(p_cuMemcpyHtoDAsync_v2(first, pageable, size, stream));
    memcpy(back, pageable, size);
    memset(pageable, 0, size);
    CHECK(p_cuMemcpyDtoHAsync_v2(pageable, first, size, stream));
    CHECK(p_cuStreamSynchronize(stream));
    EXPECT(memcmp(pageable, back, size) == 0);
    /* by unified addresses, and fills */
    CHECK(p_cuMemcpy(first, (CUdeviceptr)(size_t)locked, size));
    CHECK(p_cuMemcpyDtoH_v2(back, first, size));
    EXPECT(memcmp(locked, back, size) == 0);
    CHECK(p_cuMemsetD8_v2(first, 0xa5, size));
    CHECK(p_cuMemcpyDtoH_v2(back, first, size));
    for (size_t i = 0; i < size; ++i) EXPECT(back[i] == 0xa5);
    CHECK(p_cuMemFree_v2(first));
    CHECK(p_cuMemFree_v2(second));
    CHECK(p_cuMemFreeHost(locked));
    CHECK(p_cuMemFreeHost(locked_back));
    free(pageable);
    free(back);
    return sum;
}

int main(void) {
    const size_t sizes[] = {1, 100, 8192, 8193, 65536, 262145, 1 << 20, (5 << 20) + 3};
    load_driver();
    CHECK(p_cuInit(0));
    CUcontext context;
    CUstream stream;
    CHECK(p_cuCtxCreate_v2(&context, 0, 0));
    CHECK(p_cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    unsigned long sum = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) sum += check(sizes[i], stream);
    CHECK(p_cuStreamDestroy_v2(stream));
    CHECK(p_cuCtxDestroy_v2(context));
    printf("copies: %zu sizes, checksum %lu\n", sizeof sizes / sizeof *sizes, sum);
    return 0;
}
