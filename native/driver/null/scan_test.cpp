#include "driver/null/scan.h"

#include <gtest/gtest.h>

namespace weft::nulldriver {
namespace {

constexpr std::string_view kText = R"(
.version 7.8 // a comment with .entry inside
.target sm_80
.address_size 64
.visible .global .align 4 .b8 table[64];
.const .f32 scale = 0f3F800000;
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 out) helper(.param .b32 in) { ret; }
.visible .entry first(
    .param .u64 .ptr .global .align 16 first_a,
    .param .u32 first_n,
    .param .align 8 .b8 first_s[20],
    .param .f64 first_d
)
.maxntid 64, 2, 1
{
    .reg .b32 r;
    { mov.u32 r, 1; }
    ret;
}
.entry second() { ret; }
)";

TEST(NullScan, finds_entries_with_their_parameters) {
    const Scan scan = scan_ptx(kText);
    ASSERT_EQ(scan.functions.size(), 2u);
    const ptx::FunctionInfo& first = scan.functions[0];
    EXPECT_EQ(first.name, "first");
    EXPECT_EQ(first.max_threads, 128u);
    ASSERT_EQ(first.parameters.size(), 4u);
    EXPECT_EQ(first.parameters[1].offset_bytes, 8u);
    EXPECT_EQ(first.parameters[2].offset_bytes, 16u);
    EXPECT_EQ(first.parameters[2].size_bytes, 20u);
    EXPECT_EQ(first.parameters[3].offset_bytes, 40u);
    EXPECT_EQ(first.parameter_bytes, 48u);
    EXPECT_EQ(scan.functions[1].name, "second");
    EXPECT_TRUE(scan.functions[1].parameters.empty());
}

TEST(NullScan, finds_variables_with_their_sizes) {
    const Scan scan = scan_ptx(kText);
    ASSERT_EQ(scan.variables.size(), 2u);
    EXPECT_EQ(scan.variables[0].name, "table");
    EXPECT_EQ(scan.variables[0].size_bytes, 64u);
    EXPECT_EQ(scan.variables[1].space, ptx::VariableSpace::constant);
}

TEST(NullScan, survives_any_cut_of_a_text) {
    for (std::size_t size = 0; size < kText.size(); ++size) scan_ptx(kText.substr(0, size));
}

}  // namespace
}  // namespace weft::nulldriver
