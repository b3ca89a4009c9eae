/* c = a + b for a million floats, or as many as the argument says, and every result is checked. */
#include "driver.h"

static const char kPtx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r5, %r1;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %rd4, %r5, 4;\n"
    "  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
    "  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];\n"
    "  add.f32 %f3, %f1, %f2;\n"
    "  st.global.f32 [%rd7], %f3;\n"
    "done:\n"
    "  ret;\n"
    "}\n";

int main(int argc, char **argv) {
    const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000003;
    const size_t bytes = n * sizeof(float);
    load_driver();
    CHECK(p_cuInit(0));
    CUdevice device;
    CHECK(p_cuDeviceGet(&device, 0));
    CUcontext context;
    CHECK(p_cuCtxCreate_v2(&context, 0, device));
    CUmodule module;
    CHECK(p_cuModuleLoadData(&module, kPtx));
    CUfunction function;
    CHECK(p_cuModuleGetFunction(&function, module, "vector_add"));

    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
    for (unsigned i = 0; i < n; ++i) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(i % 777) * 0.5f;
    }
    CUdeviceptr da, db, dc;
    CHECK(p_cuMemAlloc_v2(&da, bytes));
    CHECK(p_cuMemAlloc_v2(&db, bytes));
    CHECK(p_cuMemAlloc_v2(&dc, bytes));
    CHECK(p_cuMemcpyHtoD_v2(da, a, bytes));
    CHECK(p_cuMemcpyHtoD_v2(db, b, bytes));
    unsigned count = n;
    void *parameters[] = {&da, &db, &dc, &count};
    CHECK(p_cuLaunchKernel(function, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    CHECK(p_cuMemcpyDtoH_v2(c, dc, bytes));
    double sum = 0;
    for (unsigned i = 0; i < n; ++i) {
        EXPECT(c[i] == a[i] + b[i]);
        sum += c[i];
    }
    CHECK(p_cuMemFree_v2(da));
    CHECK(p_cuMemFree_v2(db));
    CHECK(p_cuMemFree_v2(dc));
    CHECK(p_cuModuleUnload(module));
    CHECK(p_cuCtxDestroy_v2(context));
    printf("vector_add: %u elements, sum %.1f\n", n, sum);
    free(a);
    free(b);
    free(c);
    return 0;
}
