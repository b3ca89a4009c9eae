/* PTX shared by the programs. */
#ifndef WEFT_TESTS_KERNELS_H
#define WEFT_TESTS_KERNELS_H

/* step: data[i] = data[i] * 3 + 1 for i < n; counter: a variable that set_counter writes. */
static const char kStepPtx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .global .align 4 .b8 ballast[1048576];\n"
    ".visible .entry step(.param .u64 data, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p; .reg .b32 %r<7>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r5, %r1;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %rd2, %r5, 4;\n"
    "  add.u64 %rd3, %rd1, %rd2;\n"
    "  ld.global.u32 %r6, [%rd3];\n"
    "  mad.lo.u32 %r6, %r6, 3, 1;\n"
    "  st.global.u32 [%rd3], %r6;\n"
    "done:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry set_counter(.param .u32 value)\n"
    "{\n"
    "  .reg .b32 %r1;\n"
    "  ld.param.u32 %r1, [value];\n"
    "  st.global.u32 [counter], %r1;\n"
    "  ret;\n"
    "}\n";

#endif
