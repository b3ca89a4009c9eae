#include "wire/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gen/wire_frames.h"

namespace weft::wire {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

// The worked example of docs/design/wire.md.
// clang-format off
const std::vector<std::byte> kWorkedExample = bytes_of({
    0x30, 0, 0, 0,  0x41, 0,  0, 0,  1, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  // header
    0, 0x10, 0, 0, 0, 0x20, 0, 0,  7, 0, 0, 0,  3, 0, 0, 0,                              // destination, stream, size_bytes
    0xaa, 0xbb, 0xcc, 0, 0, 0, 0, 0,                                                     // tail, padded
});
// clang-format on

TEST(Codec, WritesTheWorkedExampleByteByByte) {
    alignas(8) std::byte buffer[encoded_size<CopyH2dInline>(3)];
    std::fill(std::begin(buffer), std::end(buffer), std::byte{0xff});
    CopyH2dInline* frame = begin_frame<CopyH2dInline>(buffer, 1, 0, 0, 3);
    frame->destination = 0x200000001000;
    frame->stream = 7;
    frame->size_bytes = 3;
    const auto payload = bytes_of({0xaa, 0xbb, 0xcc});
    std::copy(payload.begin(), payload.end(), tail_of<CopyH2dInline>(buffer));
    EXPECT_TRUE(std::ranges::equal(buffer, kWorkedExample));
}

TEST(Codec, ReadsTheWorkedExample) {
    auto view = decode<CopyH2dInline>(kWorkedExample);
    ASSERT_TRUE(view) << view.status().text();
    EXPECT_EQ(view->header.context, 1u);
    EXPECT_EQ(view->fields.destination, 0x200000001000u);
    EXPECT_EQ(view->fields.stream, 7u);
    EXPECT_EQ(view->fields.size_bytes, 3u);
    ASSERT_EQ(view->tail.size(), 8u);
    EXPECT_EQ(view->tail[2], std::byte{0xcc});
}

TEST(Codec, RefusesEveryTruncation) {
    for (std::size_t size = 0; size < kWorkedExample.size(); ++size) {
        EXPECT_FALSE(decode<CopyH2dInline>(std::span(kWorkedExample).first(size))) << size;
    }
}

TEST(Codec, RefusesAFrameWhoseHeaderLies) {
    const auto changed = [](std::size_t at, int value) {
        auto frame = kWorkedExample;
        frame[at] = static_cast<std::byte>(value);
        return decode<CopyH2dInline>(frame).is_ok();
    };
    EXPECT_FALSE(changed(0, 0x28)) << "size below the real one";
    EXPECT_FALSE(changed(0, 0x31)) << "size above the real one";
    EXPECT_FALSE(changed(4, 0x40)) << "another opcode";
    EXPECT_FALSE(changed(6, kFlagPayload)) << "a payload it cannot have";
    EXPECT_FALSE(changed(6, kFlagWaiting)) << "waits although nothing answers";
    EXPECT_FALSE(changed(6, 0x80)) << "an unknown flag";
    EXPECT_FALSE(changed(16, 1)) << "payload bytes without the flag";
    EXPECT_TRUE(changed(40, 1)) << "contents are not the codec's business";
}

TEST(Codec, RefusesAWaitingFrameWithoutItsNumber) {
    alignas(8) std::byte buffer[encoded_size<CtxSync>(0)];
    begin_frame<CtxSync>(buffer, 1, 5, kFlagWaiting, 0);
    EXPECT_TRUE(decode<CtxSync>(buffer));
    begin_frame<CtxSync>(buffer, 1, 0, kFlagWaiting, 0);
    EXPECT_FALSE(decode<CtxSync>(buffer));
    begin_frame<CtxSync>(buffer, 1, 5, 0, 0);
    EXPECT_FALSE(decode<CtxSync>(buffer)) << "CTX_SYNC must wait";
}

TEST(Codec, KnowsEveryOpcodeAndNoOther) {
    EXPECT_EQ(find_frame_info(0), nullptr);
    EXPECT_EQ(find_frame_info(kLastOpcode + 1), nullptr);
    EXPECT_EQ(find_frame_info(0xffff), nullptr);
    const FrameInfo* launch = find_frame_info(Launch::kOpcode);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch->name, "LAUNCH");
    EXPECT_EQ(launch->stream_offset, static_cast<int>(sizeof(FrameHeader) + offsetof(Launch, stream)));
    EXPECT_EQ(launch->waiting, Has::never);
}

TEST(Codec, TextEndsAtItsFirstZero) {
    EXPECT_EQ(text_of(bytes_of({'h', 'i', 0, 0, 'x'})), "hi");
    EXPECT_EQ(text_of({}), "");
}

}  // namespace
}  // namespace weft::wire
