/* Loads, uses and unloads a module with a megabyte of variables many times: device memory must not shrink, values must hold. */
#include "driver.h"
#include "kernels.h"

static size_t free_bytes(void) {
    size_t free_now, total;
    CHECK(p_cuMemGetInfo_v2(&free_now, &total));
    return free_now;
}

int main(void) {
    enum { kRounds = 500, kSlack = 4 << 20 };
    load_driver();
    CHECK(p_cuInit(0));
    CUcontext context;
    CHECK(p_cuCtxCreate_v2(&context, 0, 0));
    size_t before = 0;
    unsigned sum = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
        CUmodule module;
        CUfunction set;
        CUdeviceptr counter, ballast;
        size_t size;
        CHECK(p_cuModuleLoadData(&module, kStepPtx));
        CHECK(p_cuModuleGetFunction(&set, module, "set_counter"));
        CHECK(p_cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
        EXPECT(size == 4);
        unsigned value = 0;
        CHECK(p_cuMemcpyDtoH_v2(&value, counter, 4));
        EXPECT(value == 7);
        CHECK(p_cuModuleGetGlobal_v2(&ballast, &size, module, "ballast"));
        EXPECT(size == 1048576);
        CHECK(p_cuMemcpyDtoH_v2(&value, ballast + 1048572, 4));
        EXPECT(value == 0);
        void *parameters[] = {&round};
        CHECK(p_cuLaunchKernel(set, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        CHECK(p_cuMemcpyDtoH_v2(&value, counter, 4));
        EXPECT(value == round);
        sum += value;
        CHECK(p_cuModuleUnload(module));
        if (round == 9) before = free_bytes();
    }
    EXPECT(free_bytes() + kSlack >= before);
    CHECK(p_cuCtxDestroy_v2(context));
    printf("module_loop: %d loads, checksum %u\n", kRounds, sum);
    return 0;
}
