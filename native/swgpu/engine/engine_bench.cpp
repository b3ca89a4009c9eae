// Measures the engine on a tiled matrix product and prints one JSON line. Usage:
//   weft-swgpu-bench [--size N] [--threads N] [--seconds S] [--profile]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "swgpu/engine/test_device.h"

namespace weft::engine {
namespace {

constexpr int kTile = 16;

struct Options {
    uint32_t size = 512;
    unsigned threads = 2;
    double seconds = 2;
    bool profile = false;
};

// C = A * B for square matrices: tiles of 16x16 in shared memory, the inner loop unrolled, as compilers write it.
std::string matmul_text() {
    std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry matmul(.param .u64 A, .param .u64 B, .param .u64 C, .param .u32 N)
{
  .reg .pred %p<2>;
  .reg .b32 %r<40>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<16>;
  .shared .align 4 .b8 tile_a[1024];
  .shared .align 4 .b8 tile_b[1024];
  ld.param.u64 %rd1, [A];
  ld.param.u64 %rd2, [B];
  ld.param.u64 %rd3, [C];
  ld.param.u32 %r1, [N];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  shl.b32 %r6, %r5, 4;
  add.s32 %r7, %r6, %r3;
  shl.b32 %r8, %r4, 4;
  add.s32 %r9, %r8, %r2;
  mad.lo.s32 %r10, %r7, %r1, %r2;
  mad.lo.s32 %r11, %r3, %r1, %r9;
  shl.b32 %r12, %r1, 4;
  shl.b32 %r13, %r3, 6;
  mov.u32 %r14, tile_a;
  add.s32 %r15, %r14, %r13;
  shl.b32 %r16, %r2, 2;
  add.s32 %r17, %r15, %r16;
  mov.u32 %r18, tile_b;
  add.s32 %r19, %r18, %r16;
  add.s32 %r20, %r19, %r13;
  mov.u32 %r21, 0;
  mov.f32 %f1, 0f00000000;
$loop:
  mul.wide.s32 %rd4, %r10, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.f32 %f2, [%rd5];
  st.shared.f32 [%r17], %f2;
  mul.wide.s32 %rd6, %r11, 4;
  add.s64 %rd7, %rd2, %rd6;
  ld.global.f32 %f3, [%rd7];
  st.shared.f32 [%r20], %f3;
  bar.sync 0;
)";
    for (int k = 0; k < kTile; ++k) {
        text += "  ld.shared.f32 %f4, [%r15+" + std::to_string(4 * k) + "];\n";
        text += "  ld.shared.f32 %f5, [%r19+" + std::to_string(64 * k) + "];\n";
        text += "  fma.rn.f32 %f1, %f4, %f5, %f1;\n";
    }
    return text + R"(  bar.sync 0;
  add.s32 %r10, %r10, 16;
  add.s32 %r11, %r11, %r12;
  add.s32 %r21, %r21, 16;
  setp.lt.s32 %p1, %r21, %r1;
  @%p1 bra $loop;
  mad.lo.s32 %r22, %r7, %r1, %r9;
  mul.wide.s32 %rd8, %r22, 4;
  add.s64 %rd9, %rd3, %rd8;
  st.global.f32 [%rd9], %f1;
  ret;
}
)";
}

std::string opcode_at(const std::string& text, uint32_t line) {
    size_t at = 0;
    for (uint32_t i = 1; i < line && at != std::string::npos; ++i) at = text.find('\n', at) + 1;
    at = text.find_first_not_of(" \t", at);
    if (text[at] == '@') at = text.find_first_not_of(" \t", text.find(' ', at));
    return text.substr(at, text.find_first_of(" \t;", at) - at);
}

void print_profile(const Launch& launch, const std::string& text) {
    struct Total {
        std::string opcode;
        uint64_t warps = 0, nanoseconds = 0;
    };
    std::vector<Total> totals;
    uint64_t all = 0;
    for (const LineProfile& line : launch.profile()) {
        std::string opcode = opcode_at(text, line.line);
        auto at =
            std::find_if(totals.begin(), totals.end(), [&](const Total& total) { return total.opcode == opcode; });
        if (at == totals.end()) at = totals.insert(totals.end(), {opcode, 0, 0});
        at->warps += line.warp_instructions;
        at->nanoseconds += line.nanoseconds;
        all += line.nanoseconds;
    }
    std::sort(totals.begin(), totals.end(),
              [](const Total& a, const Total& b) { return a.nanoseconds > b.nanoseconds; });
    std::fprintf(stderr, "%-20s %14s %10s %8s\n", "opcode", "warp instr.", "ns each", "share");
    for (const Total& total : totals) {
        std::fprintf(stderr, "%-20s %14llu %10.1f %7.1f%%\n", total.opcode.c_str(),
                     static_cast<unsigned long long>(total.warps),
                     static_cast<double>(total.nanoseconds) / static_cast<double>(total.warps),
                     100.0 * static_cast<double>(total.nanoseconds) / static_cast<double>(all));
    }
}

bool parse_options(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--profile") == 0) {
            options.profile = true;
        } else if (std::strcmp(argv[i], "--size") == 0 && has_value) {
            options.size = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10)) / kTile * kTile;
        } else if (std::strcmp(argv[i], "--threads") == 0 && has_value) {
            options.threads = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
        } else if (std::strcmp(argv[i], "--seconds") == 0 && has_value) {
            options.seconds = std::strtod(argv[++i], nullptr);
        } else {
            return false;
        }
    }
    return options.size >= kTile && options.size <= 8192 && options.threads >= 1;
}

bool is_product(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, uint32_t n) {
    for (uint32_t at = 0; at < n * n; at += n * 7 + 13) {
        float sum = 0;
        for (uint32_t k = 0; k < n; ++k) sum = __builtin_fmaf(a[at / n * n + k], b[k * n + at % n], sum);
        if (c[at] != sum) return false;
    }
    return true;
}

int run(const Options& options) {
    std::string text = matmul_text();
    auto program = compile(text, {});
    if (!program) {
        std::fprintf(stderr, "%s\n", program.status().text().c_str());
        return 1;
    }
    TestMemory memory;
    auto module = load_module(*program, memory);
    auto kernel = (*module)->kernel("matmul");
    uint32_t n = options.size;
    std::vector<float> a(size_t{n} * n), b(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(static_cast<int>(i * 7 % 13) - 6) / 8;
        b[i] = static_cast<float>(static_cast<int>(i * 5 % 11) - 5) / 4;
    }
    uint64_t c = memory.allocate(a.size() * 4);
    Arguments arguments;
    arguments.add(memory.upload(a)).add(memory.upload(b)).add(c).add(n);
    LaunchConfig config;
    config.grid = {n / kTile, n / kTile};
    config.block = {kTile, kTile};
    config.parameters = arguments.bytes();
    config.memory = &memory;
    config.profile = options.profile;
    double best = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
    do {
        auto launch = Launch::create(kernel, config);
        auto begin = std::chrono::steady_clock::now();
        run_to_end(**launch, options.threads);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if ((*launch)->fault().kind != FaultKind::none) {
            std::fprintf(stderr, "%s\n", (*launch)->fault().describe().c_str());
            return 1;
        }
        best = std::max(best, static_cast<double>((*launch)->thread_instructions()) / took.count() / 1e6);
        if (options.profile) {
            print_profile(**launch, text);
            break;
        }
    } while (std::chrono::steady_clock::now() < end);
    if (!is_product(a, b, memory.download<float>(c, a.size()), n)) {
        std::fprintf(stderr, "the product is wrong\n");
        return 1;
    }
    std::printf(
        "{\"name\":\"swgpu.matmul_minst_per_s\",\"value\":%.0f,\"unit\":\"1e6/"
        "s\",\"size\":%u,\"threads\":%u,\"isa\":\"%.*s\"}\n",
        best, n, options.threads, static_cast<int>(instruction_set().size()), instruction_set().data());
    return 0;
}

}  // namespace
}  // namespace weft::engine

int main(int argc, char** argv) {
    weft::engine::Options options;
    if (!weft::engine::parse_options(argc, argv, options)) {
        std::fprintf(stderr, "usage: weft-swgpu-bench [--size N] [--threads N] [--seconds S] [--profile]\n");
        return 2;
    }
    return weft::engine::run(options);
}
