// Programs, modules and launches as a whole.
#include <gtest/gtest.h>

#include <numeric>

#include "swgpu/engine/test_device.h"

namespace weft::engine {
namespace {

std::vector<uint32_t> results(TestMemory& memory, const std::string& text, Shape shape, std::string* error = nullptr) {
    size_t count = size_t{shape.grid.x} * shape.block.x;
    uint64_t out = memory.upload(std::vector<uint32_t>(count, 0xdeadbeef));
    Arguments arguments;
    arguments.add(out);
    Outcome outcome = run_kernel(memory, text, "k", shape, arguments);
    if (error) *error = outcome.error;
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.fault.kind, FaultKind::none) << outcome.fault.describe();
    return memory.download<uint32_t>(out, count);
}

TEST(Engine, AddsVectorsAcrossBlocks) {
    TestMemory memory;
    std::vector<float> a(1000), b(1000);
    std::iota(a.begin(), a.end(), 0.0f);
    std::iota(b.begin(), b.end(), 500.0f);
    uint64_t out = memory.allocate(4000);
    Arguments arguments;
    arguments.add(memory.upload(a)).add(memory.upload(b)).add(out).add(uint32_t{1000});
    Outcome outcome = run_kernel(memory, ptx_text(R"(
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
})"),
                                 "add", {{4}, {256}}, arguments);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.fault.kind, FaultKind::none) << outcome.fault.describe();
    auto c = memory.download<float>(out, 1000);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(c[i], a[i] + b[i]);
}

TEST(Engine, ReducesInSharedMemory) {
    TestMemory memory;
    auto out = results(memory, body_text(R"(
  .shared .align 4 .b8 s[1024];
  mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %addr, %r1, %r2; st.shared.u32 [%addr], %r0;
  bar.sync 0;
  mov.u32 %r3, 128;
LOOP:
  setp.ge.u32 %p1, %r0, %r3;
  @%p1 bra SKIP;
  shl.b32 %r4, %r3, 2; add.u32 %r5, %addr, %r4;
  ld.shared.u32 %r6, [%r5]; ld.shared.u32 %r7, [%addr]; add.u32 %r6, %r6, %r7; st.shared.u32 [%addr], %r6;
SKIP:
  bar.sync 0;
  shr.u32 %r3, %r3, 1;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra LOOP;
  ld.shared.u32 %r9, [s];)"),
                       {{3}, {256}});
    for (uint32_t value : out) EXPECT_EQ(value, 255u * 256 / 2);
}

TEST(Engine, RefusesUnknownInstructionsWithTheirLine) {
    auto error = [](std::string_view body) { return compile(ptx_text(body), {}).status().text(); };
    EXPECT_EQ(error(".entry k() {\n .reg .b32 %r<4>;\n frobnicate.u32 %r1,\t%r2;\n}"),
              "line 6: unsupported instruction 'frobnicate.u32 %r1, %r2'");
    EXPECT_EQ(error(".entry k() {\n .reg .b32 %r<4>;\n add.frob.s32 %r1, %r2, %r3;\n}"),
              "line 6: unsupported instruction 'add.frob.s32 %r1, %r2, %r3'");
    EXPECT_EQ(compile(ptx_text(".entry k() { .reg .b32 %r<4>; add.q.s32 %r1, %r1, %r1; }"), {}).status().code(),
              ErrorCode::unsupported);
    EXPECT_NE(error(".entry k() {\n bra NOWHERE;\n}").find("line 5: unknown label 'NOWHERE'"), std::string::npos);
    EXPECT_NE(error(".entry k() {\n .reg .b32 %r<2>; .reg .b64 %rd<2>;\n add.s32 %r1, %r1, %rd1;\n}")
                  .find("line 6: an operand has the wrong size"),
              std::string::npos);
    EXPECT_NE(error(".entry k() {\n .reg .b32 %r<2>;\n ld.global.u32 %r1, [nothing];\n}")
                  .find("line 6: unknown name 'nothing'"),
              std::string::npos);
}

TEST(Engine, RefusesATextForANewerDevice) {
    auto program = compile(".version 8.0\n.target sm_90\n.address_size 64\n", {80});
    ASSERT_FALSE(program.is_ok());
    EXPECT_EQ(program.status().code(), ErrorCode::version);
}

TEST(Engine, ReportsWhatAFunctionNeeds) {
    auto program = compile(ptx_text(R"(
.shared .align 4 .b8 unused[4096];
.shared .align 4 .b8 used[512];
.func f() { .local .b8 depot[40]; .reg .b32 %r; mov.u32 %r, used; ret; }
.visible .entry k(.param .u64 p) { .local .b8 depot[24]; call f; ret; })"),
                           {});
    ASSERT_TRUE(program.is_ok()) << program.status().text();
    for (const ptx::FunctionInfo& info : (*program)->functions()) {
        if (!info.is_entry) continue;
        EXPECT_EQ(info.static_shared_bytes, 512u);
        EXPECT_EQ(info.local_bytes_per_thread, 32u + 48u);
        EXPECT_GE(info.register_count, 16u);
    }
}

TEST(Engine, ResolvesVariablesAndTheirInitialisers) {
    TestMemory memory;
    auto out = results(memory,
                       body_text(R"(
  ld.global.u64 %rd1, [pointer]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2; ld.u32 %r1, [%rd3];
  mov.u64 %rd4, factors; cvta.const.u64 %rd5, %rd4; add.s64 %rd6, %rd5, %rd2; ld.u32 %r2, [%rd6];
  ld.const.u32 %r3, [factors+4];
  mul.lo.u32 %r9, %r1, %r2; add.u32 %r9, %r9, %r3;)",
                                 ".global .u32 data[5] = {0, 10, 20, 30, 40};\n.const .u32 factors[4] = {1, 2, 3, "
                                 "4};\n.global .u64 pointer = generic(data)+4;"),
                       {{1}, {4}});
    EXPECT_EQ(out, (std::vector<uint32_t>{12, 42, 92, 162}));
}

TEST(Engine, LinksTexts) {
    TestMemory memory;
    auto first = compile(ptx_text(R"(
.extern .func (.param .b32 r) twice(.param .b32 a);
.extern .global .u32 offset;
.func (.param .b32 r) helper(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.u32 [r], %r1; ret; }
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<9>; .reg .b64 %rd<4>; mov.u32 %r1, %tid.x;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call.uni (q), twice, (p); ld.param.b32 %r2, [q]; }
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call.uni (q), helper, (p); ld.param.b32 %r2, [q]; }
  ld.global.u32 %r3, [offset]; add.u32 %r2, %r2, %r3;
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret; })"),
                         {});
    ASSERT_TRUE(first.is_ok()) << first.status().text();
    EXPECT_EQ((*first)->undefined(), (std::vector<std::string>{"offset", "twice"}));
    EXPECT_FALSE(load_module(*first, memory).is_ok());
    // Its own `helper` is another function than the first text's.
    auto second = compile(ptx_text(R"(
.visible .global .u32 offset = 100;
.func (.param .b32 r) helper(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; shl.b32 %r1, %r1, 1; st.param.u32 [r], %r1; ret; }
.visible .func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %r<3>; ld.param.u32 %r1, [a];
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call.uni (q), helper, (p); ld.param.b32 %r2, [q]; }
  st.param.u32 [r], %r2; ret; })"),
                          {});
    ASSERT_TRUE(second.is_ok()) << second.status().text();
    std::vector<std::shared_ptr<const Program>> both{*first, *second};
    auto linked = link(both);
    ASSERT_TRUE(linked.is_ok()) << linked.status().text();
    EXPECT_TRUE((*linked)->undefined().empty());
    auto module = load_module(*linked, memory);
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    uint64_t out = memory.allocate(16);
    Arguments arguments;
    arguments.add(out);
    LaunchConfig config;
    config.block = {4};
    config.parameters = arguments.bytes();
    config.memory = &memory;
    auto launch = Launch::create((*module)->kernel("k"), config);
    ASSERT_TRUE(launch.is_ok());
    run_to_end(**launch);
    EXPECT_EQ(memory.download<uint32_t>(out, 4), (std::vector<uint32_t>{101, 103, 105, 107}));
    both.push_back(*second);
    EXPECT_NE(link(both).status().text().find("is defined in more than one text"), std::string::npos);
}

TEST(Engine, PrintsAndAsserts) {
    std::string text = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 format[] = {37, 100, 58, 37, 115, 32, 37, 46, 50, 102, 10, 0};
.global .align 1 .b8 name[] = {97, 98, 0};
.visible .entry k() {
  .local .align 8 .b8 depot[24]; .reg .b64 %rd<9>; .reg .b32 %r<4>; .reg .pred %p<2>;
  mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;
  st.local.u32 [%rd1], %r1; cvta.global.u64 %rd3, name; st.local.u64 [%rd1+8], %rd3; st.local.f64 [%rd1+16], 0d3FF8000000000000;
  { .param .b64 a; .param .b64 b; .param .b32 c; cvta.global.u64 %rd4, format; st.param.b64 [a], %rd4; st.param.b64 [b], %rd2; call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }
  setp.ne.u32 %p1, %r2, 3; @%p1 trap;
  setp.ne.u32 %p1, %r1, 1; @%p1 bra END;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd3; st.param.b64 [b], %rd3; st.param.b32 [c], 7; st.param.b64 [d], %rd3; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }
END: ret; })";
    TestMemory memory;
    Outcome outcome = run_kernel(memory, ptx_text(text), "k", {{1}, {2}}, {});
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.output,
              "0:ab 1.50\n1:ab 1.50\nab:7: ab: block: [0,0,0], thread: [1,0,0] Assertion `ab` failed.\n");
    EXPECT_EQ(outcome.fault.kind, FaultKind::assert_failed);
    EXPECT_EQ(outcome.fault.thread.x, 1u);
}

TEST(Engine, ChecksLaunches) {
    auto program = compile(
        ptx_text(".shared .b8 s[1000];\n.visible .entry k(.param .u64 a) { .reg .b32 %r; mov.u32 %r, s; ret; }"), {});
    ASSERT_TRUE(program.is_ok());
    TestMemory memory;
    auto kernel = (*load_module(*program, memory))->kernel("k");
    uint64_t zero = 0;
    auto refused = [&](auto&& change) {
        LaunchConfig config;
        config.parameters = {reinterpret_cast<const uint8_t*>(&zero), 8};
        change(config);
        return !Launch::create(kernel, config).is_ok();
    };
    EXPECT_FALSE(refused([](LaunchConfig&) {}));
    EXPECT_TRUE(refused([](LaunchConfig& c) { c.grid.y = 0; }));
    EXPECT_TRUE(refused([](LaunchConfig& c) { c.block = {1025}; }));
    EXPECT_TRUE(refused([](LaunchConfig& c) { c.block = {64, 32}; }));
    EXPECT_TRUE(refused([](LaunchConfig& c) { c.dynamic_shared_bytes = 227 * 1024; }));
    EXPECT_TRUE(refused([](LaunchConfig& c) { c.parameters = {}; }));
}

TEST(Engine, CountsAtomicsOfAllWorkers) {
    TestMemory memory;
    uint64_t out = memory.upload(std::vector<uint32_t>(4, 0));
    Arguments arguments;
    arguments.add(out);
    Outcome outcome = run_kernel(memory, ptx_text(R"(
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  red.global.add.u32 [%rd1], 1;
  atom.add.f32 %f1, [%rd1+4], 0f3F800000;
  mov.u32 %r1, %ctaid.x; atom.global.max.u32 %r2, [%rd1+8], %r1;
  atom.global.inc.u32 %r3, [%rd1+12], 9;
  ret; })"),
                                 "k", {{64}, {96}, 0, 4, 500}, arguments);
    EXPECT_EQ(outcome.error, "");
    auto value = memory.download<uint32_t>(out, 4);
    EXPECT_EQ(value[0], 64u * 96);
    EXPECT_EQ(memory.download<float>(out + 4, 1)[0], 64.0f * 96);
    EXPECT_EQ(value[2], 63u);
    EXPECT_EQ(value[3], 64u * 96 % 10);
}

}  // namespace
}  // namespace weft::engine
