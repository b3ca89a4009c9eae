// Control flow of warps: divergence, re-convergence, barriers, calls, forward progress.
#include <gtest/gtest.h>

#include "swgpu/engine/test_device.h"

namespace weft::engine {
namespace {

std::vector<uint32_t> results(const std::string& text, Shape shape) {
    TestMemory memory;
    size_t count = size_t{shape.grid.x} * shape.block.x;
    uint64_t out = memory.upload(std::vector<uint32_t>(count, 0xdeadbeef));
    Arguments arguments;
    arguments.add(out);
    Outcome outcome = run_kernel(memory, text, "k", shape, arguments);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.fault.kind, FaultKind::none) << outcome.fault.describe();
    return memory.download<uint32_t>(out, count);
}

TEST(Flow, LanesMeetAgainAfterABranch) {
    // activemask behind the branch shows all lanes, inside it only those that took it.
    auto out = results(body_text(R"(
  and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0;
  @%p1 bra EVEN;
  activemask.b32 %r2; bra.uni JOIN;
EVEN:
  activemask.b32 %r2;
JOIN:
  activemask.b32 %r3; setp.ne.u32 %p2, %r3, -1; selp.b32 %r9, 0, %r2, %p2;)"),
                       {{1}, {32}});
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane & 1 ? 0xaaaaaaaau : 0x55555555u);
}

TEST(Flow, LoopsWithDifferentTripCounts) {
    auto out = results(body_text(R"(
  mov.u32 %r1, 0;
LOOP:
  setp.ge.u32 %p1, %r1, %r0; @%p1 bra DONE;
  rem.u32 %r2, %r1, 3; setp.eq.u32 %p2, %r2, 0;
  @%p2 bra NEXT;
  setp.gt.u32 %p3, %r1, 20; rem.u32 %r3, %r0, 5; setp.eq.and.u32 %p3, %r3, 0, %p3;
  @%p3 bra DONE;
  add.u32 %r9, %r9, %r1;
NEXT:
  add.u32 %r1, %r1, 1; bra LOOP;
DONE:
  activemask.b32 %r4; setp.ne.u32 %p4, %r4, -1; @%p4 mov.u32 %r9, -1;)"),
                       {{1}, {32}});
    for (uint32_t t = 0; t < 32; ++t) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < t; ++i) {
            if (i % 3 == 0) continue;
            if (i > 20 && t % 5 == 0) break;
            sum += i;
        }
        EXPECT_EQ(out[t], sum) << t;
    }
}

TEST(Flow, LanesThatReturnEarlyDoNotHoldUpBarriers) {
    auto out = results(ptx_text(R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 3;
  setp.lt.u32 %p2, %r1, 40; @%p2 bra A;
  @%p1 exit;
  bra B;
A: @%p1 ret;
B: bar.sync 0;
  bar.red.popc.u32 %r3, 0, %p2;
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3; ret; })"),
                       {{1}, {100}});
    for (uint32_t t = 0; t < 100; ++t) EXPECT_EQ(out[t], t % 4 == 3 ? 0xdeadbeefu : 30u) << t;
}

TEST(Flow, BarriersInsideUniformBranches) {
    auto out = results(body_text(R"(
  .shared .u32 s[128];
  mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;
  setp.ge.u32 %p1, %r0, 64; @%p1 bra UPPER;
  st.shared.u32 [%r1], %r0; bar.sync 1, 64; xor.b32 %r3, %r2, 4; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; ld.shared.u32 %r9, [%r3];
  bra END;
UPPER:
  st.shared.u32 [%r1], 7; bar.sync 2, 64; ld.shared.u32 %r9, [%r1];
END:
  bar.sync 0;)"),
                       {{2}, {128}});
    for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(out[t], t % 128 >= 64 ? 7u : (t % 128) ^ 1) << t;
}

TEST(Flow, ProducersArriveAndConsumersWait) {
    auto out = results(body_text(R"(
  .shared .u32 s;
  setp.ge.u32 %p1, %r0, 32; @%p1 bra CONSUMER;
  setp.eq.u32 %p2, %r0, 5; @%p2 st.shared.u32 [s], 42;
  bar.arrive 3, 64; bra END;
CONSUMER:
  bar.sync 3, 64; ld.shared.u32 %r9, [s];
END:)"),
                       {{1}, {64}});
    for (uint32_t t = 32; t < 64; ++t) EXPECT_EQ(out[t], 42u);
}

TEST(Flow, CallsInDivergedCodeMeetAtTheReturn) {
    auto out = results(body_text(R"(
  setp.lt.u32 %p1, %r0, 10;
  @!%p1 bra SKIP;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r0; call (q), square, (p); ld.param.b32 %r9, [q]; }
  activemask.b32 %r1; setp.ne.u32 %p2, %r1, 0x3ff; @%p2 mov.u32 %r9, -1;
SKIP:)",
                                 R"(
.func (.param .b32 r) square(.param .b32 a) {
  .reg .b32 %r<4>; .reg .pred %p; ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0;
  @%p bra EVEN; st.param.b32 [r], 1000; ret;
EVEN: mul.lo.u32 %r3, %r1, %r1; st.param.b32 [r], %r3; ret; })"),
                       {{1}, {32}});
    for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], t >= 10 ? 0u : t & 1 ? 1000u : t * t) << t;
}

TEST(Flow, RecursionWithDifferentDepths) {
    auto out = results(body_text(R"(
  rem.u32 %r1, %r0, 11;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), fib, (p); ld.param.b32 %r9, [q]; })",
                                 R"(
.func (.param .b32 r) fib(.param .b32 a) {
  .reg .b32 %r<8>; .reg .pred %p; ld.param.u32 %r1, [a]; setp.lt.u32 %p, %r1, 2; @%p bra BASE;
  sub.u32 %r2, %r1, 1; sub.u32 %r3, %r1, 2;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call (q), fib, (p); ld.param.b32 %r4, [q]; }
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r3; call (q), fib, (p); ld.param.b32 %r5, [q]; }
  add.u32 %r1, %r4, %r5;
BASE: st.param.b32 [r], %r1; ret; })"),
                       {{2}, {64}});
    uint32_t fib[12] = {0, 1};
    for (int i = 2; i < 12; ++i) fib[i] = fib[i - 1] + fib[i - 2];
    for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(out[t], fib[t % 64 % 11]) << t;
}

TEST(Flow, EndlessRecursionIsAStackOverflow) {
    TestMemory memory;
    Outcome outcome = run_kernel(
        memory, ptx_text(".func f() { .local .b8 a[16]; call f; ret; }\n.visible .entry k() { call f; ret; }"), "k",
        {{1}, {32}}, {});
    EXPECT_EQ(outcome.fault.kind, FaultKind::stack_overflow) << outcome.error;
    outcome = run_kernel(memory, ptx_text(".func f() { call f; ret; }\n.visible .entry k() { call f; ret; }"), "k",
                         {{1}, {32}}, {});
    EXPECT_EQ(outcome.fault.kind, FaultKind::stack_overflow) << outcome.error;
}

TEST(Flow, LongChainsOfCalls) {
    constexpr int kChain = 20000;
    std::string text;
    for (int i = kChain; i >= 0; --i) {
        text += ".func f" + std::to_string(i) + "() { " + (i == kChain ? "" : "call f" + std::to_string(i + 1) + "; ") +
                "ret; }\n";
    }
    text += ".visible .entry k() { call f0; ret; }";
    auto program = compile(ptx_text(text), {});
    EXPECT_TRUE(program.is_ok()) << program.status().text();
}

TEST(Flow, IndirectCallsByLane) {
    auto out = results(body_text(R"(
  rem.u32 %r1, %r0, 3; mov.u64 %rd1, table; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; ld.global.u64 %rd3, [%rd1];
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r0;
    PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (q), %rd3, (p), PROTO; ld.param.b32 %r9, [q]; }
  activemask.b32 %r2; setp.ne.u32 %p2, %r2, -1; @%p2 mov.u32 %r9, -1;)",
                                 R"(
.func (.param .b32 r) f0(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a]; add.u32 %r, %r, 100; st.param.b32 [r], %r; ret; }
.func (.param .b32 r) f1(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a]; add.u32 %r, %r, 200; st.param.b32 [r], %r; ret; }
.func (.param .b32 r) f2(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a]; add.u32 %r, %r, 300; st.param.b32 [r], %r; ret; }
.global .u64 table[3] = {f0, f1, f2};)"),
                       {{1}, {32}});
    for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], t + 100 * (t % 3 + 1)) << t;
}

TEST(Flow, IndexedBranches) {
    auto out = results(body_text(R"(
  and.b32 %r1, %r0, 3;
  T: .branchtargets L0, L1, L2, L1;
  brx.idx %r1, T;
L0: mov.u32 %r9, 10; bra END;
L1: mov.u32 %r9, 11; bra END;
L2: mov.u32 %r9, 12;
END: activemask.b32 %r2; setp.ne.u32 %p2, %r2, -1; @%p2 mov.u32 %r9, -1;)"),
                       {{1}, {32}});
    for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], t % 4 == 0 ? 10u : t % 4 == 2 ? 12u : 11u);
}

TEST(Flow, LanesOfOneWarpTakeALockInTurn) {
    TestMemory memory;
    uint64_t state = memory.upload(std::vector<uint32_t>(2, 0));
    Arguments arguments;
    arguments.add(state);
    Outcome outcome = run_kernel(memory, ptx_text(R"(
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [p];
SPIN: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra SPIN;
  membar.gl; ld.volatile.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd1+4], %r2; membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0; ret; })"),
                                 "k", {{3}, {40}}, arguments);
    EXPECT_EQ(outcome.fault.kind, FaultKind::none) << outcome.error << outcome.fault.describe();
    EXPECT_EQ(memory.download<uint32_t>(state, 2)[1], 120u);
}

TEST(Flow, ShufflesWaitForLanesOnOtherPaths) {
    auto out = results(body_text(R"(
  setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;
  mul.lo.u32 %r1, %r0, 2; bra SHUFFLE;
LOW: add.u32 %r1, %r0, 1000;
SHUFFLE: shfl.sync.bfly.b32 %r9|%p2, %r1, 16, 31, -1;)"),
                       {{1}, {32}});
    for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], t < 16 ? (t + 16) * 2 : t - 16 + 1000);
}

TEST(Flow, BlocksThatWaitForEachOtherAllGetTheirTurn) {
    // A barrier across the grid: works with one worker only if unfinished blocks do not keep the others from starting.
    TestMemory memory;
    uint64_t state = memory.upload(std::vector<uint32_t>(1, 0));
    Arguments arguments;
    arguments.add(state);
    Outcome outcome = run_kernel(memory, ptx_text(R"(
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; red.global.add.u32 [%rd1], 1;
WAIT: ld.relaxed.gpu.global.u32 %r1, [%rd1]; setp.lt.u32 %p, %r1, 40; @%p bra WAIT;
  ret; })"),
                                 "k", {{40}, {1}, 0, 1, 2000}, arguments);
    EXPECT_EQ(outcome.fault.kind, FaultKind::none) << outcome.fault.describe();
}

}  // namespace
}  // namespace weft::engine
