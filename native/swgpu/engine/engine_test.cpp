#include <gtest/gtest.h>

#include "swgpu/engine/test_device.h"

namespace weft::engine {
namespace {

constexpr const char* kHeader = ".version 7.8\n.target sm_80\n.address_size 64\n";

TEST(Engine, AddsVectors) {
    std::string ptx = std::string(kHeader) + R"(
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $L__BB0_2;
  cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2; add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3; add.s64 %rd10, %rd9, %rd5; st.global.f32 [%rd10], %f3;
$L__BB0_2:
  ret;
})";
    auto program = compile(ptx, {});
    ASSERT_TRUE(program.is_ok()) << program.status().text();
    TestMemory memory;
    auto module = load_module(*program, memory);
    ASSERT_TRUE(module.is_ok());
    auto kernel = (*module)->kernel("add");
    ASSERT_NE(kernel, nullptr);
    std::vector<float> a(1000), b(1000);
    for (int i = 0; i < 1000; ++i) a[i] = float(i), b[i] = float(2 * i);
    uint64_t da = memory.upload(a), db = memory.upload(b), dc = memory.allocate(4000);
    Arguments arguments;
    arguments.add(da).add(db).add(dc).add(uint32_t{1000});
    LaunchConfig config;
    config.grid = {4};
    config.block = {256};
    config.parameters = arguments.bytes();
    config.memory = &memory;
    auto launch = Launch::create(kernel, config);
    ASSERT_TRUE(launch.is_ok());
    run_to_end(**launch);
    EXPECT_EQ((*launch)->fault().kind, FaultKind::none) << (*launch)->fault().describe();
    auto c = memory.download<float>(dc, 1000);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(c[i], float(3 * i));
}

}  // namespace
}  // namespace weft::engine
