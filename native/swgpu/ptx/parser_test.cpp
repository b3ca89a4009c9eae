// Grammar of PTX texts: what is understood, and that errors name their line.
#include "swgpu/ptx/parser.h"

#include <gtest/gtest.h>

namespace weft::ptx {
namespace {

constexpr std::string_view kHeader = ".version 7.8\n.target sm_80\n.address_size 64\n";

std::string text_of(std::string_view body) { return std::string(kHeader) + std::string(body); }

std::string error_of(std::string_view body) {
    auto module = parse(text_of(body));
    return module.is_ok() ? "" : module.status().text();
}

TEST(Parser, ReadsVersionAndTarget) {
    auto module = parse(".version 8.3\n.target sm_90a, debug\n.address_size 64\n");
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    EXPECT_EQ(module->ptx_version, 83u);
    EXPECT_EQ(module->target_sm, 90u);
}

TEST(Parser, LaysOutKernelParameters) {
    auto module =
        parse(text_of(".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 8 .b8 "
                      "c[12], .param .u16 d) { ret; }"));
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    const FunctionInfo& info = module->functions[0].info;
    ASSERT_EQ(info.parameters.size(), 4u);
    EXPECT_EQ(info.parameters[1].offset_bytes, 8u);
    EXPECT_TRUE(info.parameters[1].is_pointer);
    EXPECT_EQ(info.parameters[2].offset_bytes, 16u);
    EXPECT_EQ(info.parameters[2].size_bytes, 12u);
    EXPECT_EQ(info.parameters[3].offset_bytes, 28u);
    EXPECT_EQ(info.parameter_bytes, 30u);
}

TEST(Parser, ReadsLaunchBounds) {
    auto module = parse(
        text_of(".entry k() .maxntid 16, 8, 1 .minnctapersm 2 .maxnreg 40 { ret; }\n.entry l() .reqntid 64 { ret; }"));
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    EXPECT_EQ(module->functions[0].info.max_threads, 128u);
    EXPECT_EQ(module->functions[0].info.min_blocks_per_sm, 2u);
    EXPECT_EQ(module->functions[1].info.required_block[0], 64u);
    EXPECT_EQ(module->functions[1].info.required_block[2], 1u);
}

TEST(Parser, ReadsInitialisers) {
    auto module = parse(text_of(
        ".global .align 4 .u32 a[2][2] = {{1, 2}, {-1}};\n.const .f32 f = 1.5;\n.global .f64 d = 0d3FF0000000000000;\n"
        ".global .u64 p[2] = {generic(a)+8, a};\n.global .align 8 .b8 m[2] = {0xFF(a), 0xFF00(a)};\n"
        ".extern .shared .align 16 .b8 s[];\n.global .b8 text[] = {104, 105, 0};"));
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    EXPECT_EQ(module->variables[0].size_bytes, 16u);
    EXPECT_EQ(module->variables[0].initializer, (std::vector<uint8_t>{1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255}));
    EXPECT_EQ(module->variables[1].initializer, (std::vector<uint8_t>{0, 0, 0xc0, 0x3f}));
    ASSERT_EQ(module->variables[3].relocations.size(), 2u);
    EXPECT_EQ(module->variables[3].relocations[0].addend, 8);
    EXPECT_EQ(module->variables[4].relocations[1].shift_bits, 8);
    EXPECT_EQ(module->variables[5].size_bytes, 0u);
    EXPECT_EQ(module->variables[6].size_bytes, 3u);
}

TEST(Parser, KeepsRegistersOfInnerScopesApart) {
    auto module = parse(text_of(
        ".entry k() { .reg .b32 %r<3>; mov.u32 %r1, 1; { .reg .b32 %r1; mov.u32 %r1, 2; } mov.u32 %r2, %r1; ret; }"));
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    const auto& code = module->functions[0].instructions;
    EXPECT_NE(code[0].operands[0].index, code[1].operands[0].index);
    EXPECT_EQ(code[0].operands[0].index, code[2].operands[1].index);
}

TEST(Parser, ReadsOperands) {
    auto module =
        parse(text_of(R"(.entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .pred %p<3>; .reg .v4 .f32 v; .reg .b64 %rd<3>;
        setp.lt.and.s32 %p1|%p2, %r1, -5, !%p0;
        ld.param.u64 %rd1, [p+0];
        ld.global.v4.f32 {%r1, _, %r2, %r3}, [%rd1+-16];
        mov.b32 %r4, 0f3F800000;
        mov.f32 v.y, 0d3FF0000000000000;
        @!%p1 mov.u32 %r5, %tid.x;
        mov.u64 %rd2, p;
        ret; })"));
    ASSERT_TRUE(module.is_ok()) << module.status().text();
    const auto& code = module->functions[0].instructions;
    EXPECT_TRUE(code[0].operands[0].has_second());
    EXPECT_TRUE(code[0].operands[3].negated);
    EXPECT_EQ(static_cast<int64_t>(code[0].operands[2].bits), -5);
    EXPECT_EQ(code[2].operands[0].elements.size(), 4u);
    EXPECT_EQ(code[2].operands[1].offset, -16);
    EXPECT_TRUE(code[3].operands[1].is_f32_bits);
    EXPECT_TRUE(code[5].guard_negated);
    EXPECT_EQ(code[5].operands[1].kind, Operand::Kind::special);
}

TEST(Parser, SkipsDebugInformation) {
    EXPECT_EQ(error_of(".file 1 \"a.cu\", 12, 13\n.entry k() { .loc 1 2 3\n .loc 1 5 6, function_name $L+2, inlined_at "
                       "1 7 8\n .pragma \"nounroll\"; ret; }\n"
                       ".section .debug_abbrev\n{\n.b8 1\n.b8 2\n}\n"),
              "");
}

TEST(Parser, AcceptsCommentsAndATrailingZero) {
    std::string text = text_of("/* two\nlines */ .entry k() { ret; // end\n }\n");
    text.push_back('\0');
    text += "garbage \x01";
    EXPECT_TRUE(parse(text).is_ok());
}

struct BadText {
    const char* text;
    const char* error;
};

class BadTexts : public testing::TestWithParam<BadText> {};

TEST_P(BadTexts, NamesTheLine) {
    std::string error = error_of(GetParam().text);
    EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Parser, BadTexts,
    testing::Values(BadText{".entry k() {\n add.s32 %r1, %r2, %r3;\n}", "line 5: unknown register '%r1'"},
                    BadText{".entry k() {\n .reg .b32 %r<2>;\n .reg .b32 %r1, %r1;\n}",
                            "line 6: '%r1' is declared twice"},
                    BadText{".entry k() {\n ret\n}", "line 6: expected"},
                    BadText{".entry k() { ret;", "expected '}', found the end of the text"},
                    BadText{".entry k(.param .texref t) { ret; }", "line 4: unsupported type or attribute '.texref'"},
                    BadText{".frob", "line 4: unsupported directive '.frob'"},
                    BadText{".global .u32 a[99999999999999];", "line 4: number"},
                    BadText{".entry k() { .reg .b32 %r<4000000000>; }", "line 4: number"},
                    BadText{".global .align 3 .u32 a;", "not a power of two"}, BadText{"/* open", "expected"},
                    BadText{".entry k() { @%q bra L; L: ret; }", "is no predicate register"},
                    BadText{".entry k() { .reg .b32 a; L: mov.u32 a, 1; L: ret; }", "label 'L' is defined twice"},
                    BadText{".extern .func f() { ret; }", "cannot have a body"},
                    BadText{".shared .u32 s = 5;", "cannot be initialised"},
                    BadText{".address_size 32", "only .address_size 64"}));

TEST(Parser, RefusesATextWithoutHeader) {
    EXPECT_EQ(parse("").status().text(), "line 1: expected '.version', found the end of the text");
    EXPECT_FALSE(parse(".version 7.0\n").is_ok());
    EXPECT_FALSE(parse("\x7f"
                       "ELF")
                     .is_ok());
}

}  // namespace
}  // namespace weft::ptx
