#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "fixture.h"

namespace {

const char kPrinting[] = R"(
.version 7.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 line[] = {104, 105, 32, 37, 100, 10, 0};
.global .align 1 .b8 message[] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[] = {107, 46, 99, 117, 0};
.global .align 1 .b8 name[] = {102, 40, 41, 0};

// prints "hi <value>"
.visible .entry say(.param .u32 value) {
    .local .align 8 .b8 arguments[8];
    .reg .b32 %r<3>; .reg .b64 %rd<5>;
    ld.param.u32 %r1, [value];
    mov.u64 %rd1, arguments;
    st.local.u32 [%rd1], %r1;
    cvta.local.u64 %rd2, %rd1;
    mov.u64 %rd3, line;
    cvta.global.u64 %rd4, %rd3;
    { .param .b64 a; .param .b64 b; .param .b32 c;
      st.param.b64 [a], %rd4; st.param.b64 [b], %rd2;
      call.uni (c), vprintf, (a, b);
      ld.param.b32 %r2, [c]; }
    ret;
}

// assert(x > 0), line 19 of k.cu
.visible .entry fail() {
    .reg .b64 %rd<7>;
    mov.u64 %rd1, message; cvta.global.u64 %rd2, %rd1;
    mov.u64 %rd3, file; cvta.global.u64 %rd4, %rd3;
    mov.u64 %rd5, name; cvta.global.u64 %rd6, %rd5;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], %rd2; st.param.b64 [b], %rd4; st.param.b32 [c], 19; st.param.b64 [d], %rd6; st.param.b64 [e], 1;
      call.uni __assertfail, (a, b, c, d, e); }
    ret;
}
)";

// Between its making and text(), what goes to the descriptor goes into a file.
class Captured {
  public:
    explicit Captured(int descriptor) : descriptor_(descriptor), file_(std::tmpfile()) {
        std::fflush(nullptr);
        before_ = ::dup(descriptor);
        ::dup2(::fileno(file_), descriptor);
    }
    ~Captured() { restore(); }
    // What was written so far.
    std::string so_far() {
        std::fflush(nullptr);
        char buffer[65536];
        const ssize_t got = ::pread(::fileno(file_), buffer, sizeof buffer, 0);
        return std::string(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    }
    std::string text() {
        const std::string all = so_far();
        restore();
        return all;
    }

  private:
    void restore() {
        if (before_ < 0) return;
        std::fflush(nullptr);
        ::dup2(before_, descriptor_);
        ::close(before_);
        before_ = -1;
        std::fclose(file_);
    }
    int descriptor_;
    std::FILE* file_;
    int before_ = -1;
};

}  // namespace

class Printing : public ContextTest {
  protected:
    CUfunction function(const char* of) {
        CUfunction found = nullptr;
        if (printing_ == nullptr) {
            EXPECT_OK(cu.cuModuleLoadData(&printing_, kPrinting));
        }
        EXPECT_OK(cu.cuModuleGetFunction(&found, printing_, of));
        return found;
    }
    CUmodule printing_ = nullptr;
};

TEST_F(Printing, comes_when_the_context_is_synchronised) {
    const CUfunction say = function("say");
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 1, 1, nullptr, 7u));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(out.text(), "hi 7\n");
}

TEST_F(Printing, comes_when_a_stream_is_synchronised) {
    const CUfunction say = function("say");
    const CUstream own = stream();
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 1, 2, own, 8u));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(out.text(), "hi 8\nhi 8\n");
}

TEST_F(Printing, comes_when_an_event_is_waited_for) {
    const CUfunction say = function("say");
    const CUstream own = stream();
    const CUevent done = event();
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 1, 1, own, 9u));
    EXPECT_OK(cu.cuEventRecord(done, own));
    EXPECT_TRUE(eventually([&] { return cu.cuEventQuery(done) == CUDA_SUCCESS; }));
    EXPECT_OK(cu.cuEventSynchronize(done));
    EXPECT_EQ(out.text(), "hi 9\n");
}

TEST_F(Printing, comes_with_a_blocking_copy) {
    const CUfunction say = function("say");
    const CUdeviceptr data = allocate(4);
    std::uint32_t value = 0;
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 1, 1, nullptr, 1u));
    EXPECT_OK(cu.cuMemcpyDtoH_v2(&value, data, 4));
    EXPECT_EQ(out.text(), "hi 1\n");
}

TEST_F(Printing, lies_between_what_the_program_prints_before_and_after) {
    const CUfunction say = function("say");
    Captured out(STDOUT_FILENO);
    std::printf("before\n");  // still in stdio's buffer: standard output is a file here
    EXPECT_OK(launch(say, 1, 1, nullptr, 1u));
    EXPECT_OK(launch(say, 1, 1, nullptr, 2u));
    EXPECT_OK(cu.cuCtxSynchronize());
    std::printf("after\n");
    EXPECT_EQ(out.text(), "before\nhi 1\nhi 2\nafter\n");
}

TEST_F(Printing, is_not_lost_when_the_context_or_the_module_goes) {
    const CUfunction say = function("say");
    {
        Captured out(STDOUT_FILENO);
        EXPECT_OK(launch(say, 1, 1, nullptr, 3u));
        EXPECT_OK(cu.cuModuleUnload(printing_));
        EXPECT_EQ(out.text(), "hi 3\n");
    }
    printing_ = nullptr;
    const CUfunction again = function("say");
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(again, 1, 1, nullptr, 4u));
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
    context = nullptr;
    EXPECT_EQ(out.text(), "hi 4\n");
}

TEST_F(Printing, keeps_the_newest_lines_where_the_buffer_is_too_small) {
    SOFTWARE_GPU_ONLY();
    const CUfunction say = function("say");
    EXPECT_OK(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12));
    const CUstream own = stream();
    Spinner spinner(kernel("spin"), own);
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 1, 5, own, 5u));  // 5 bytes each
    spinner.release();
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(out.text(), "hi 5\nhi 5\n");
}

TEST_F(Printing, large_output_arrives_whole) {
    const CUfunction say = function("say");
    const CUstream own = stream();
    Captured out(STDOUT_FILENO);
    EXPECT_OK(launch(say, 32, 64, own, 6u));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(out.text().size(), 32u * 64 * 5);
}

TEST_F(Printing, a_failed_assertion_tells_where_and_ends_the_context) {
    const CUfunction fail = function("fail");
    Captured error(STDERR_FILENO);
    EXPECT_OK(launch(fail, 1, 1, nullptr));
    EXPECT_EQ(CUDA_ERROR_ASSERT, cu.cuCtxSynchronize());
    EXPECT_NE(error.text().find("k.cu:19: f(): block: [0,0,0], thread: [0,0,0] Assertion `x > 0` failed.\n"),
              std::string::npos);
    EXPECT_EQ(CUDA_ERROR_ASSERT, cu.cuCtxSynchronize()) << "sticky";
    (void)cu.cuCtxDestroy_v2(context);
    context = nullptr;
}
