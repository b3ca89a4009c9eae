// The generated side of the executor against a driver of a few functions.
#include "gen/executor_dispatch.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "gen/wire_frames.h"

namespace weft::executor {
namespace {

CUstream const kStream = reinterpret_cast<CUstream>(0x51);
CUfunction const kFunction = reinterpret_cast<CUfunction>(0xf1);

// Knows stream 7 and function (3, 1).
class FakeResolver : public CallResolver {
  public:
    CUresult stream(std::uint32_t number, CUstream* stream) override {
        *stream = kStream;
        return number == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult event(std::uint32_t, CUevent*) override { return CUDA_ERROR_INVALID_HANDLE; }
    CUresult function(std::uint32_t module, std::uint32_t index, CUfunction* function) override {
        *function = kFunction;
        return module == 3 && index == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
};

struct Memset {
    CUdeviceptr address = 0;
    unsigned char value = 0;
    std::size_t bytes = 0;
    CUstream stream = nullptr;
} last_memset;

CUresult fake_memset(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream stream) {
    last_memset = {address, value, bytes, stream};
    return CUDA_SUCCESS;
}

CUresult fake_get_limit(std::size_t* value, CUlimit limit) {
    *value = 1000 + limit;
    return CUDA_SUCCESS;
}

CUlaunchConfig last_config;

CUresult fake_clusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
    last_config = *config;
    *clusters = function == kFunction && config->numAttrs == 1 && config->attrs[0].value.clusterDim.x == 4 ? 12 : -1;
    return CUDA_SUCCESS;
}

class DispatchTest : public testing::Test {
  protected:
    DispatchTest() {
        driver_.cuMemsetD8Async = fake_memset;
        driver_.cuCtxGetLimit = fake_get_limit;
        driver_.cuOccupancyMaxActiveClusters = fake_clusters;
    }

    template <typename Frame>
    Frame* begin(std::uint16_t flags, std::size_t tail_bytes) {
        frame_.assign(wire::encoded_size<Frame>(tail_bytes), std::byte{});
        return wire::begin_frame<Frame>(frame_.data(), 1, flags == 0 ? 0 : 9, flags, tail_bytes);
    }
    Status run(std::uint16_t opcode) {
        reply_ = ByteWriter();
        return find_call_runner(opcode)(resolver_, driver_, frame_, &result_, reply_);
    }

    FakeResolver resolver_;
    driver::DriverTable driver_;
    std::vector<std::byte> frame_;
    CUresult result_ = CUDA_ERROR_UNKNOWN;
    ByteWriter reply_;
};

TEST_F(DispatchTest, PassesArgumentsAndTheStream) {
    auto* frame = begin<wire::MemsetD8Async>(0, 0);
    frame->dstDevice = 0x1000;
    frame->uc = 0xab;
    frame->N = 64;
    frame->stream = 7;
    ASSERT_TRUE(run(wire::MemsetD8Async::kOpcode));
    EXPECT_EQ(result_, CUDA_SUCCESS);
    EXPECT_EQ(last_memset.address, 0x1000u);
    EXPECT_EQ(last_memset.value, 0xab);
    EXPECT_EQ(last_memset.bytes, 64u);
    EXPECT_EQ(last_memset.stream, kStream);
}

TEST_F(DispatchTest, UnknownNumbersAreTheCallsErrorNotTheSessions) {
    begin<wire::MemsetD8Async>(0, 0)->stream = 8;
    ASSERT_TRUE(run(wire::MemsetD8Async::kOpcode));
    EXPECT_EQ(result_, CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DispatchTest, CallsThatTheDriverLacksAreNotSupported) {
    begin<wire::CtxSetCacheConfig>(0, 0);
    ASSERT_TRUE(run(wire::CtxSetCacheConfig::kOpcode));
    EXPECT_EQ(result_, CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DispatchTest, RepliesWithWhatTheDriverGave) {
    begin<wire::CtxGetLimit>(wire::kFlagWaiting, 0)->limit = CU_LIMIT_PRINTF_FIFO_SIZE;
    ASSERT_TRUE(run(wire::CtxGetLimit::kOpcode));
    ByteReader in(reply_.bytes());
    EXPECT_EQ(in.value<std::size_t>(), 1000u + CU_LIMIT_PRINTF_FIFO_SIZE);
    EXPECT_EQ(in.left(), 0u);
}

TEST_F(DispatchTest, LaunchAttributesWithTheClientsPointersAreLeftOut) {
    CUlaunchAttribute attributes[2]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[1].value.clusterDim.x = 4;
    auto* frame = begin<wire::OccupancyMaxActiveClusters>(wire::kFlagWaiting, sizeof(attributes));
    frame->module = 3;
    frame->function = 1;
    frame->block_x = 256;
    frame->attribute_count = 2;
    std::memcpy(wire::tail_of<wire::OccupancyMaxActiveClusters>(frame_.data()), attributes, sizeof(attributes));
    ASSERT_TRUE(run(wire::OccupancyMaxActiveClusters::kOpcode));
    ByteReader in(reply_.bytes());
    EXPECT_EQ(in.i32(), 12);
    EXPECT_EQ(last_config.blockDimX, 256u);
    EXPECT_EQ(last_config.hStream, nullptr);
    frame->attribute_count = 3;
    EXPECT_EQ(run(wire::OccupancyMaxActiveClusters::kOpcode).code(), ErrorCode::protocol) << "more than the tail holds";
    frame->attribute_count = 0xffffffff;
    EXPECT_EQ(run(wire::OccupancyMaxActiveClusters::kOpcode).code(), ErrorCode::protocol);
}

TEST_F(DispatchTest, RandomFramesNeverCrash) {
    Random random(3);
    for (int round = 0; round < 200000; ++round) {
        const auto opcode = static_cast<std::uint16_t>(256 + random.below(80));
        const CallRunner runner = find_call_runner(opcode);
        ASSERT_EQ(runner != nullptr, wire::find_frame_info(opcode) != nullptr);
        if (runner == nullptr) continue;
        frame_.resize(24 + random.below(30) * 8);
        for (std::byte& byte : frame_) byte = static_cast<std::byte>(random.next());
        wire::FrameHeader header = wire::header_of(frame_);
        header.size_bytes = static_cast<std::uint32_t>(frame_.size());
        header.opcode = opcode;
        header.flags &= wire::kFlagWaiting;
        header.payload_bytes = 0;
        std::memcpy(frame_.data(), &header, sizeof(header));
        (void)runner(resolver_, driver_, frame_, &result_, reply_);
    }
}

}  // namespace
}  // namespace weft::executor
