// What goes wrong in a kernel stays in the launch: bounds, alignment, traps, deadlocks, cancellation, starvation;
// hostile texts.
#include <gtest/gtest.h>

#include <random>

#include "swgpu/engine/test_device.h"

namespace weft::engine {
namespace {

Fault fault_of(const std::string& text, uint64_t offset = 0, Shape shape = {{1}, {32}}) {
    TestMemory memory;
    uint64_t buffer = memory.allocate(256);
    Arguments arguments;
    arguments.add(buffer + offset);
    Outcome outcome = run_kernel(memory, text, "k", shape, arguments);
    EXPECT_EQ(outcome.error, "");
    return outcome.fault;
}

std::string access(std::string_view instructions) {
    return ptx_text(
        ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 16 "
        ".b8 s[64]; .local .align 16 .b8 l[32];\n"
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n" +
        std::string(instructions) + "\nret; }");
}

TEST(Fault, GlobalWriteBehindTheEnd) {
    Fault fault = fault_of(access("st.global.u32 [%rd2+160], %r1;"));
    EXPECT_EQ(fault.kind, FaultKind::illegal_address);
    EXPECT_EQ(fault.thread.x, 24u);
    EXPECT_TRUE(fault.is_write);
    EXPECT_EQ(fault.size_bytes, 4u);
    EXPECT_EQ(fault.line, 7u);
    EXPECT_EQ(fault.kernel, "k");
    EXPECT_NE(
        fault.describe().find("(write of 4 bytes, global) in kernel 'k', block (0,0,0), thread (24,0,0), PTX line 7"),
        std::string::npos)
        << fault.describe();
}

TEST(Fault, EverySpaceIsBounded) {
    EXPECT_EQ(fault_of(access("ld.global.u32 %r2, [%rd1+-4];")).kind, FaultKind::illegal_address);
    EXPECT_EQ(fault_of(access("ld.global.u32 %r2, [0];")).kind, FaultKind::illegal_address);
    EXPECT_EQ(fault_of(access("ld.global.v2.u64 {%rd3, %rd4}, [%rd1+256];")).kind, FaultKind::illegal_address);
    EXPECT_EQ(fault_of(access("mov.u64 %rd3, 0x7fffffffffffff00; ld.u32 %r2, [%rd3];")).kind,
              FaultKind::illegal_address);
    EXPECT_EQ(fault_of(access("mov.u32 %r3, s; st.shared.u32 [%r3+64], %r1;")).space, "shared");
    EXPECT_EQ(fault_of(access("mov.u32 %r3, s; add.u32 %r3, %r3, -4; ld.shared.u32 %r2, [%r3];")).space, "shared");
    EXPECT_EQ(fault_of(access("mov.u32 %r3, s; ld.shared.u32 %r2, [%r3+0xfffffff0];")).space, "shared");
    EXPECT_EQ(fault_of(access("mov.u64 %rd3, l; ld.local.u32 %r2, [%rd3+32];")).space, "local");
    EXPECT_EQ(fault_of(access("mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; st.u32 [%rd3+100], %r1;")).space, "shared");
    EXPECT_EQ(fault_of(access("ld.param.u32 %r2, [p+8];")).space, "param");
    EXPECT_EQ(fault_of(access("mov.b64 %rd3, p; ld.param.u64 %rd4, [%rd3+8];")).space, "param");
    EXPECT_EQ(fault_of(access("atom.global.add.u32 %r2, [%rd1+256], 1;")).kind, FaultKind::illegal_address);
    EXPECT_EQ(fault_of(access("cp.async.cg.shared.global [s], [%rd1+256], 16;")).kind, FaultKind::illegal_address);
    EXPECT_EQ(
        fault_of(access("mov.u32 %r3, s; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3+64];"))
            .space,
        "shared");
}

TEST(Fault, LanesThatDoNotExecuteDoNotFault) {
    EXPECT_EQ(
        fault_of(
            access("setp.lt.u32 %p1, %r1, 24; @%p1 st.global.u32 [%rd2+160], %r1; @%p1 ld.global.u32 %r2, [%rd2+160];"))
            .kind,
        FaultKind::none);
}

TEST(Fault, Misaligned) {
    EXPECT_EQ(fault_of(access("ld.global.u32 %r2, [%rd1+2];")).kind, FaultKind::misaligned_address);
    EXPECT_EQ(fault_of(access("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+8];")).kind, FaultKind::misaligned_address);
    EXPECT_EQ(fault_of(access("mov.u32 %r3, s; st.shared.u32 [%r3+1], %r1;")).kind, FaultKind::misaligned_address);
    EXPECT_EQ(fault_of(access("atom.global.add.u64 %rd3, [%rd1+4], 1;")).kind, FaultKind::misaligned_address);
}

TEST(Fault, Trap) { EXPECT_EQ(fault_of(access("setp.eq.u32 %p1, %r1, 9; @%p1 trap;")).thread.x, 9u); }

TEST(Fault, CallOfNoFunction) {
    EXPECT_EQ(fault_of(access("P: .callprototype _ (); mov.u64 %rd3, 12345; call %rd3, P;")).kind,
              FaultKind::invalid_pc);
}

TEST(Fault, BarrierThatNobodyCompletes) {
    EXPECT_EQ(fault_of(access("setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 1, 64; bar.sync 2, 64;")).kind,
              FaultKind::deadlock);
}

std::shared_ptr<Launch> endless(TestMemory& memory) {
    auto program = compile(ptx_text(".visible .entry k() {\nL: bra L;\n}"), {});
    auto module = load_module(*program, memory);
    LaunchConfig config;
    config.grid = {8};
    config.block = {64};
    config.memory = &memory;
    return *Launch::create((*module)->kernel("k"), config);
}

TEST(Fault, AnEndlessKernelCanBeCancelled) {
    TestMemory memory;
    auto launch = endless(memory);
    Worker worker;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(launch->step(worker, 1000), StepOutcome::progressed);
    launch->cancel();
    EXPECT_EQ(launch->step(worker, 1000), StepOutcome::finished);
    EXPECT_EQ(launch->fault().kind, FaultKind::cancelled);
}

TEST(Fault, CancelWhileWorkersRun) {
    TestMemory memory;
    auto launch = endless(memory);
    std::thread runner([&] { run_to_end(*launch, 2, uint64_t{1} << 40); });
    while (launch->parallelism() > 6) std::this_thread::yield();
    launch->cancel();
    runner.join();
    EXPECT_EQ(launch->fault().kind, FaultKind::cancelled);
}

TEST(Fault, AnEndlessKernelDoesNotStarveOthersOnTheSameWorker) {
    TestMemory memory;
    auto forever = endless(memory);
    auto program = compile(body_text("mov.u32 %r9, 5;"), {});
    auto module = load_module(*program, memory);
    uint64_t out = memory.allocate(4 * 256);
    Arguments arguments;
    arguments.add(out);
    LaunchConfig config;
    config.grid = {4};
    config.block = {64};
    config.parameters = arguments.bytes();
    config.memory = &memory;
    auto launch = *Launch::create((*module)->kernel("k"), config);
    Worker worker;
    for (int i = 0; i < 1000 && !launch->finished(); ++i) {
        EXPECT_EQ(forever->step(worker, 200), StepOutcome::progressed);
        launch->step(worker, 200);
    }
    EXPECT_TRUE(launch->finished());
    EXPECT_EQ(memory.download<uint32_t>(out, 256), std::vector<uint32_t>(256, 5));
    forever->cancel();
}

TEST(Fault, TheFirstFaultEndsTheLaunch) {
    Fault fault = fault_of(access("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 3; @%p1 trap; L: bra L;"), 0,
                           {{64}, {32}, 0, 2, 500});
    EXPECT_EQ(fault.kind, FaultKind::trap);
    EXPECT_EQ(fault.block.x, 3u);
}

std::string sample_text() {
    return body_text(R"(
  .shared .align 4 .b8 s[128]; .local .align 8 .b8 l[16];
  mov.u32 %r1, s; and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0; bar.sync 0;
  setp.lt.u32 %p1, %r0, 7; @%p1 bra A; ld.shared.u32 %r9, [%r3]; bra B;
A: mov.u64 %rd1, l; st.local.v2.u32 [%rd1], {%r0, %r1}; ld.local.u64 %rd2, [%rd1]; cvt.u32.u64 %r9, %rd2;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r9; call.uni (q), f, (p); ld.param.b32 %r9, [q]; }
B: shfl.sync.bfly.b32 %r5|%p2, %r9, 1, 31, -1; cvt.rn.f32.u32 %f1, %r5; fma.rn.f32 %f2, %f1, 0f40000000, %f1;
  cvt.rzi.u32.f32 %r9, %f2; vote.sync.ballot.b32 %r6, %p1, -1; lop3.b32 %r9, %r9, %r6, %r5, 0x96; add.cc.u32 %r7, %r9, %r6; addc.u32 %r9, %r7, 0;)",
                     ".global .align 4 .u32 table[4] = {1, 2, generic(table), 4};\n"
                     ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r1, "
                     "%r1, 3; st.param.b32 [r], %r1; ret; }\n");
}

// Each changed text either fails to compile, or runs to its end or into a fault within its budget.
void try_text(const std::string& text) {
    auto program = compile(text, {});
    if (!program) {
        EXPECT_FALSE(program.status().text().empty());
        return;
    }
    TestMemory memory;
    for (const ptx::VariableInfo& variable : (*program)->variables()) {
        if (variable.size_bytes > 1 << 20) return;
    }
    auto module = load_module(*program, memory);
    if (!module) return;
    auto kernel = (*module)->kernel("k");
    if (kernel == nullptr) return;
    Arguments arguments;
    arguments.add(memory.allocate(4 * 64)).add(uint64_t{0}).add(uint64_t{0});
    LaunchConfig config;
    config.block = {64};
    config.parameters = arguments.bytes();
    config.memory = &memory;
    auto launch = Launch::create(kernel, config);
    if (!launch) return;
    Worker worker;
    for (int i = 0; i < 20 && !(*launch)->finished(); ++i) (*launch)->step(worker, 500);
    (*launch)->cancel();
}

TEST(Fuzz, TruncatedTextsNeverCrash) {
    std::string text = sample_text();
    ASSERT_TRUE(compile(text, {}).is_ok()) << compile(text, {}).status().text();
    for (size_t length = 0; length < text.size(); length += 3) try_text(text.substr(0, length));
}

TEST(Fuzz, ChangedTextsNeverCrash) {
    std::mt19937 random(20261121);
    const std::string text = sample_text();
    const std::string_view pieces[] = {"%r1",  "%rd1",       "%p1",      "%f1",         "s",     "l",     "0",
                                       "-1",   "4294967295", ";",        ",",           "{",     "}",     "[",
                                       "]",    "bra",        "A",        ".u64",        ".s16",  ".v4",   "ret",
                                       "exit", "call",       "bar.sync", "0f7fc00000",  "table", "f",     "@%p1",
                                       "!",    "|",          "+8",       "+0x7fffffff", ".pred", "%tid.x"};
    for (int round = 0; round < 6000; ++round) {
        std::string changed = text;
        for (uint32_t n = 1 + random() % 3; n > 0; --n) {
            size_t at = random() % changed.size();
            switch (random() % 4) {
                case 0: changed[at] = static_cast<char>(32 + random() % 95); break;
                case 1: changed.erase(at, 1 + random() % 12); break;
                case 2: changed.insert(at, pieces[random() % std::size(pieces)]); break;
                default: {
                    size_t begin = changed.find_first_of(" ,", at);
                    if (begin != std::string::npos)
                        changed.replace(begin + 1, 1 + random() % 4, pieces[random() % std::size(pieces)]);
                }
            }
            if (changed.empty()) break;
        }
        try_text(changed);
    }
}

}  // namespace
}  // namespace weft::engine
