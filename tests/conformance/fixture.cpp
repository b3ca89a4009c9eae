#include "fixture.h"

#include <chrono>
#include <cstring>
#include <thread>

void PrintTo(CUresult result, std::ostream* out) {
    const char* name = nullptr;
    if (cu.cuGetErrorName != nullptr && cu.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr)
        *out << name << " ";
    *out << "(" << static_cast<int>(result) << ")";
}

const char kKernels[] = R"(
.version 7.0
.target sm_50
.address_size 64

.visible .global .align 4 .u32 counter = 41;
.visible .global .align 8 .b8 scratch[1000];
.visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};
.extern .shared .align 4 .b8 dynamic[];

// out[0] = value
.visible .entry set_value(.param .u64 out, .param .u32 value) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}

// data[0] += 1 by each thread
.visible .entry increment(.param .u64 data) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    atom.global.add.u32 %r1, [%rd1], 1;
    ret;
}

// data[i] = data[i] * 3 + 1 for i < n
.visible .entry step(.param .u64 data, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<7>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.u32 %rd2, %r5, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r6, [%rd3];
    mad.lo.u32 %r6, %r6, 3, 1;
    st.global.u32 [%rd3], %r6;
done:
    ret;
}

// runs until flag[0] is not zero
.visible .entry spin(.param .u64 flag) {
    .reg .pred %p; .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}

// each thread writes its coordinates at its linear index: block x | y << 8 | z << 16, then thread likewise
.visible .entry coordinates(.param .u64 out) {
    .reg .b32 %r<24>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
    mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y; mov.u32 %r8, %tid.z;
    mov.u32 %r9, %ntid.x; mov.u32 %r10, %ntid.y; mov.u32 %r11, %ntid.z;
    mad.lo.u32 %r12, %r3, %r5, %r2;
    mad.lo.u32 %r12, %r12, %r4, %r1;
    mul.lo.u32 %r13, %r9, %r10;
    mul.lo.u32 %r13, %r13, %r11;
    mad.lo.u32 %r14, %r8, %r10, %r7;
    mad.lo.u32 %r14, %r14, %r9, %r6;
    mad.lo.u32 %r15, %r12, %r13, %r14;
    shl.b32 %r16, %r2, 8; shl.b32 %r17, %r3, 16;
    or.b32 %r18, %r1, %r16; or.b32 %r18, %r18, %r17;
    shl.b32 %r19, %r7, 8; shl.b32 %r20, %r8, 16;
    or.b32 %r21, %r6, %r19; or.b32 %r21, %r21, %r20;
    mul.wide.u32 %rd2, %r15, 8;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r18;
    st.global.u32 [%rd3+4], %r21;
    ret;
}

// parameters of many sizes: out[0..5] as f64 = a, b, c, d, e, s[8]
.visible .entry parameters(.param .u8 a, .param .u16 b, .param .f64 c, .param .u32 d, .param .f32 e,
                           .param .align 4 .b8 s[12], .param .u64 out) {
    .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .f64 %d<7>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u8 %h1, [a]; cvt.rn.f64.u16 %d1, %h1;
    ld.param.u16 %h2, [b]; cvt.rn.f64.u16 %d2, %h2;
    ld.param.f64 %d3, [c];
    ld.param.u32 %r1, [d]; cvt.rn.f64.u32 %d4, %r1;
    ld.param.f32 %f1, [e]; cvt.f64.f32 %d5, %f1;
    ld.param.u32 %r2, [s+8]; cvt.rn.f64.u32 %d6, %r2;
    st.global.f64 [%rd1], %d1; st.global.f64 [%rd1+8], %d2; st.global.f64 [%rd1+16], %d3;
    st.global.f64 [%rd1+24], %d4; st.global.f64 [%rd1+32], %d5; st.global.f64 [%rd1+40], %d6;
    ret;
}

// out[i] = in[n - 1 - i] within one block, through dynamic shared memory
.visible .entry reverse(.param .u64 out, .param .u64 in) {
    .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    mov.u32 %r4, dynamic;
    shl.b32 %r5, %r1, 2;
    add.u32 %r5, %r4, %r5;
    st.shared.u32 [%r5], %r3;
    bar.sync 0;
    sub.u32 %r6, %r2, %r1;
    sub.u32 %r6, %r6, 1;
    shl.b32 %r6, %r6, 2;
    add.u32 %r6, %r4, %r6;
    ld.shared.u32 %r7, [%r6];
    add.u64 %rd5, %rd1, %rd3;
    st.global.u32 [%rd5], %r7;
    ret;
}

// out[0] = counter, then counter += table[index]
.visible .entry use_globals(.param .u64 out, .param .u32 index) {
    .reg .b32 %r<5>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [index];
    mov.u64 %rd2, table;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.const.u32 %r2, [%rd4];
    ld.global.u32 %r3, [counter];
    st.global.u32 [%rd1], %r3;
    add.u32 %r4, %r3, %r2;
    st.global.u32 [counter], %r4;
    ret;
}

.visible .entry small_blocks(.param .u64 out) .maxntid 64, 1, 1 {
    .shared .align 4 .b8 own[4096];
    .reg .b32 %r<3>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, own;
    st.shared.u32 [%r1], 7;
    ld.shared.u32 %r2, [%r1];
    st.global.u32 [%rd1], %r2;
    ret;
}

.visible .entry nothing() { ret; }

// writes a word at an address that the host chose
.visible .entry poke(.param .u64 address, .param .u32 value) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [address];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry trap_now() { trap; ret; }
)";

bool is_software_gpu() {
    char name[256] = "";
    CUdevice device = 0;
    cu.cuInit(0);
    return cu.cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           cu.cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS && std::strncmp(name, "Weft", 4) == 0;
}

void ContextTest::SetUp() {
    DriverTest::SetUp();
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, device));
}

void ContextTest::TearDown() {
    if (context == nullptr) return;
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
}

CUfunction ContextTest::kernel(const char* name) {
    if (module == nullptr) {
        EXPECT_OK(cu.cuModuleLoadData(&module, kKernels));
    }
    CUfunction function = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&function, module, name)) << name;
    return function;
}

CUdeviceptr ContextTest::allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&address, bytes));
    return address;
}

CUstream ContextTest::stream(unsigned flags) {
    CUstream made = nullptr;
    EXPECT_OK(cu.cuStreamCreate(&made, flags));
    return made;
}

CUevent ContextTest::event(unsigned flags) {
    CUevent made = nullptr;
    EXPECT_OK(cu.cuEventCreate(&made, flags));
    return made;
}

Spinner::Spinner(CUfunction spin, CUstream stream) {
    void* one = nullptr;
    EXPECT_OK(cu.cuMemHostAlloc(&one, sizeof(std::uint32_t), 0));
    one_ = static_cast<std::uint32_t*>(one);
    *one_ = 1;
    EXPECT_OK(cu.cuMemAlloc_v2(&flag_, sizeof(std::uint32_t)));
    EXPECT_OK(cu.cuStreamCreate(&release_stream_, CU_STREAM_NON_BLOCKING));
    // A first run that ends at once: loading the function must not wait for the endless one later.
    EXPECT_OK(cu.cuMemsetD32_v2(flag_, 1, 1));
    void* pointers[] = {&flag_};
    EXPECT_OK(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, pointers, nullptr));
    EXPECT_OK(cu.cuStreamSynchronize(stream));
    EXPECT_OK(cu.cuMemsetD32_v2(flag_, 0, 1));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, pointers, nullptr));
}

void Spinner::release() {
    if (released_) return;
    released_ = true;
    EXPECT_OK(cu.cuMemcpyHtoDAsync_v2(flag_, one_, sizeof(std::uint32_t), release_stream_));
}

bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::yield();
    }
    return true;
}

std::vector<std::uint8_t> pattern(size_t bytes, unsigned seed) {
    std::vector<std::uint8_t> values(bytes);
    std::uint32_t state = seed * 2654435761u + 1;
    for (auto& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<std::uint8_t>(state >> 24);
    }
    return values;
}
