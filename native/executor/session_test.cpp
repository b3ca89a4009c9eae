// A session against a driver whose work completes when the test says so: what each frame does, in which order, and what
// is told.
#include "executor/session.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/log.h"
#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::FakeDriver;
using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        set_log_level(LogLevel::error);
        fake().reset();
    }
    static FakeDriver& fake() { return FakeDriver::get(); }
};

struct AddParameters {
    std::uint64_t a, b, c;
    std::uint32_t n;
};

template <typename T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

void run_vector_add(TestClient& client) {
    constexpr std::uint32_t kCount = 1024;
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    ASSERT_EQ(client.map(kWindow, 2u << 20), CUDA_SUCCESS);
    const wire::ModuleReply module = client.load(".visible .global .align 4 .b8 counter[5000];");
    ASSERT_EQ(module.functions.size(), 2u);
    EXPECT_EQ(module.functions[0].name, "add");
    EXPECT_EQ(module.functions[0].parameters.size(), 4u);
    ASSERT_EQ(module.globals.size(), 1u);
    EXPECT_EQ(module.reserve, (std::vector<wire::AddressRange>{{0x70001000, 8192}}));

    std::vector<float> a(kCount), b(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i) a[i] = static_cast<float>(i), b[i] = 2.0f * static_cast<float>(i);
    wire::CopyH2dInline inline_copy{};
    inline_copy.destination = kWindow;
    inline_copy.size_bytes = kCount * 4;
    client.send(1, inline_copy, bytes(a));
    wire::CopyH2d copy{};
    copy.destination = kWindow + 4096;
    client.send(1, copy, {}, bytes(b));
    const AddParameters parameters{kWindow, kWindow + 4096, kWindow + 8192, kCount};
    client.launch(0, 0, std::as_bytes(std::span(&parameters, 1)).first(28));
    wire::CopyD2h back{};
    back.source = kWindow + 8192;
    back.size_bytes = kCount * 4;
    back.transfer = 5;
    EXPECT_EQ(client.status_of(1, back), CUDA_SUCCESS);
    const auto data = client.of(wire::Data::kOpcode);
    ASSERT_EQ(data.size(), 1u);
    EXPECT_EQ(data[0].as<wire::Data>().transfer, 5u);
    std::vector<float> c(kCount);
    std::memcpy(c.data(), data[0].tail<wire::Data>().data(), kCount * 4);
    for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], 3.0f * static_cast<float>(i));
    EXPECT_EQ(client.status_of(1, wire::CtxSync{}), CUDA_SUCCESS);
    EXPECT_EQ(client.channel.lent_buffers(), 0u);
}

TEST_F(SessionTest, VectorAddFromHelloToResult) {
    TestClient client(fake().table());
    run_vector_add(client);
}

TEST_F(SessionTest, VectorAddWithDirectAccessNeedsNoCopyOfTheDriver) {
    fake().reset(true);
    TestClient client(fake().table());
    run_vector_add(client);
    EXPECT_EQ(fake().log, (std::vector<std::string>{"add@0"}));
}

TEST_F(SessionTest, EverythingIsGivenBackAtTheEnd) {
    {
        TestClient client(fake().table());
        client.start(3);
        wire::EventCreate event{};
        event.event = 9;
        client.send(1, event);
        client.settle();
        EXPECT_GT(fake().live_events(), 0u);
    }
    EXPECT_EQ(fake().live_contexts(), 0);
    EXPECT_EQ(fake().live_events(), 0u);
    EXPECT_EQ(fake().mapped_bytes(), 0u);
}

TEST_F(SessionTest, TakenWindowIsRefusedAndAnotherAccepted) {
    fake().taken.insert(kWindow);
    TestClient client(fake().table());
    EXPECT_EQ(client.hello(), CUDA_ERROR_INVALID_ADDRESS_SPACE);
    wire::Window window{kWindow + TestClient::kStride, TestClient::kStride};
    EXPECT_EQ(client.status_of(0, window), CUDA_SUCCESS);
    EXPECT_EQ(client.session.window_base(), kWindow + TestClient::kStride);
}

TEST_F(SessionTest, HelloReplyDescribesTheDevicesWithTheirCap) {
    SessionOptions options;
    options.devices = {1, 0};
    options.cap_bytes = {4u << 20, 6u << 20};
    TestClient client(fake().table(), options);
    wire::Hello hello{};
    hello.protocol = 1;
    hello.window_base = kWindow;
    hello.window_stride_bytes = TestClient::kStride;
    const auto reply = wire::decode_hello_reply(client.call(0, hello).tail<wire::Reply>());
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->devices.size(), 2u);
    EXPECT_EQ(reply->devices[0].ordinal, 1u);
    EXPECT_EQ(reply->devices[0].total_memory_bytes, 4u << 20);
    EXPECT_EQ(reply->devices[1].total_memory_bytes, 6u << 20);
    EXPECT_EQ(reply->devices[0].attributes.get(5), 5);
}

TEST_F(SessionTest, MemoryEndsExactlyAtTheCap) {
    SessionOptions options;
    options.cap_bytes = {4u << 20};
    TestClient client(fake().table(), options);
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    EXPECT_EQ(client.map(kWindow, 2u << 20), CUDA_SUCCESS);
    EXPECT_EQ(client.map(kWindow + (2u << 20), 4u << 20), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.map(kWindow + (2u << 20), 2u << 20), CUDA_SUCCESS);
    EXPECT_EQ(client.map(kWindow + (4u << 20), 2u << 20), CUDA_ERROR_OUT_OF_MEMORY);
    wire::MemUnmap unmap{};
    unmap.address = kWindow;
    unmap.size_bytes = 2u << 20;
    client.send(0, unmap);
    EXPECT_EQ(client.map(kWindow + (4u << 20), 2u << 20), CUDA_SUCCESS);
    EXPECT_EQ(fake().mapped_bytes(), 4u << 20);
}

TEST_F(SessionTest, ImageIsAskedForOnceOnly) {
    TestClient client(fake().table());
    client.start();
    const auto options = wire::encode(wire::JitOptions{});
    const Heard again = client.call(1, client.module_of("image", 8), options);
    EXPECT_FALSE(wire::decode_module_reply(again.tail<wire::Reply>())->need_image);
    const Heard other = client.call(1, client.module_of("other", 9), options);
    EXPECT_TRUE(wire::decode_module_reply(other.tail<wire::Reply>())->need_image);
}

TEST_F(SessionTest, ImageUnderAWrongHashIsNotLoaded) {
    TestClient client(fake().table());
    client.start();
    wire::Image image{};
    image.hash = client.module_of("right").hash;
    image.size_bytes = 5;
    client.send(0, image, bytes(std::vector<char>{'w', 'r', 'o', 'n', 'g'}));
    EXPECT_EQ(client.status_of(1, client.module_of("right", 8), wire::encode(wire::JitOptions{})),
              CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(SessionTest, CompilerLogOfAFailedLoadComesBack) {
    TestClient client(fake().table());
    client.start();
    client.send_image("bad image");
    const Heard reply = client.call(1, client.module_of("bad image", 8), wire::encode(wire::JitOptions{}));
    EXPECT_EQ(reply.as<wire::Reply>().status, CUDA_ERROR_INVALID_PTX);
    EXPECT_EQ(wire::decode_module_reply(reply.tail<wire::Reply>())->error_log, "line 1: bad");
}

TEST_F(SessionTest, LinkedImageComesBackAndIsKnown) {
    TestClient client(fake().table());
    client.start();
    wire::LinkRequest request;
    for (const std::string_view part : {"part one ", "part two"}) {
        wire::LinkInput input;
        input.hash = client.module_of(part).hash;
        input.size_bytes = part.size();
        request.inputs.push_back(input);
    }
    wire::Link link{};
    link.transfer = 77;
    const Heard first = client.call(1, link, wire::encode(request));
    EXPECT_EQ(wire::decode_link_reply(first.tail<wire::Reply>())->missing, (std::vector<std::uint32_t>{0, 1}));
    client.send_image("part one ");
    client.send_image("part two");
    const Heard second = client.call(1, link, wire::encode(request));
    const auto reply = wire::decode_link_reply(second.tail<wire::Reply>());
    EXPECT_EQ(reply->image_bytes, 17u);
    EXPECT_EQ(reply->hash, client.module_of("part one part two").hash);
    client.run_until([&] { return !client.of(wire::Data::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::Data::kOpcode)[0].payload.size(), 17u);
    const Heard loaded = client.call(1, client.module_of("part one part two", 9), wire::encode(wire::JitOptions{}));
    EXPECT_FALSE(wire::decode_module_reply(loaded.tail<wire::Reply>())->need_image);
}

// ------------------------------------------------------------------------------------------------ order and completion

TEST_F(SessionTest, SyncIsAnsweredWhenTheWorkIsComplete) {
    TestClient client(fake().table());
    client.start(1);
    fake().automatic = false;
    client.launch(1, 1);
    wire::StreamSync sync{};
    sync.stream = 1;
    const std::uint32_t request = client.ask(1, sync);
    client.settle();
    EXPECT_EQ(client.find_reply(request), nullptr);
    fake().run_all();
    client.run_until([&] { return client.find_reply(request) != nullptr; });
}

TEST_F(SessionTest, StreamIsParkedAtItsLimitAndResumed) {
    TestClient client(fake().table());
    client.start(1);
    fake().automatic = false;
    fake().log.clear();
    for (int i = 0; i < 2000; ++i) client.launch(1, 1);
    client.settle();
    EXPECT_LE(fake().log.size(), InFlight::kMaxOutstanding + InFlight::kMarkerInterval);
    EXPECT_GT(client.session.parked_frames(), 1000u);
    while (client.session.parked_frames() > 0) {
        fake().run_all();
        client.run_until([&] { return fake().pending() > 0 || client.session.parked_frames() == 0; });
    }
    EXPECT_EQ(fake().log.size(), 2000u);
    std::uint32_t credit = 0;
    for (const Heard& heard : client.of(wire::Credit::kOpcode)) credit += heard.as<wire::Credit>().frames;
    EXPECT_GE(credit, 2000u - CreditCounter::kFrameBatch);
}

TEST_F(SessionTest, PayloadsOfParkedCopiesDoNotKeepTheChannelsBuffers) {
    TestClient client(fake().table());
    client.start(1);
    fake().automatic = false;
    for (std::uint32_t i = 0; i < InFlight::kMaxOutstanding + 2 * InFlight::kMarkerInterval; ++i) client.launch(1, 1);
    std::vector<float> data(2048);
    for (int i = 0; i < 50; ++i) {
        for (float& value : data) value = static_cast<float>(i);
        wire::CopyH2d copy{};
        copy.destination = kWindow + static_cast<std::uint64_t>(i) * 8192;
        copy.stream = 1;
        client.send(1, copy, {}, bytes(data));
    }
    client.settle();
    EXPECT_EQ(client.channel.lent_buffers(), 0u);
    fake().automatic = true;
    fake().run_all();
    wire::StreamSync sync{};
    sync.stream = 1;
    EXPECT_EQ(client.status_of(1, sync), CUDA_SUCCESS);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(reinterpret_cast<float*>(kWindow)[i * 2048 + 2047], static_cast<float>(i));
}

TEST_F(SessionTest, DataComesBeforeWhatImpliesIt) {
    TestClient client(fake().table());
    client.start(1);
    fake().automatic = false;
    wire::EventCreate create{};
    create.event = 3;
    client.send(1, create);
    wire::CopyD2h copy{};
    copy.source = kWindow;
    copy.size_bytes = 600000;
    copy.transfer = 5;
    copy.stream = 1;
    client.send(1, copy);
    wire::EventRecord record{};
    record.event = 3;
    record.stream = 1;
    record.record = 1;
    client.send(1, record);
    wire::EventQuery query{};
    query.event = 3;
    query.record = 1;
    const std::uint32_t asked = client.ask(1, query);
    const std::uint32_t synced = client.ask(1, wire::CtxSync{});
    client.settle();
    ASSERT_NE(client.find_reply(asked), nullptr);
    EXPECT_EQ(client.find_reply(asked)->as<wire::Reply>().status, CUDA_ERROR_NOT_READY);
    fake().run_all();
    client.run_until([&] { return client.find_reply(synced) != nullptr; });
    const int done =
        client.position_of([](const Heard& heard) { return heard.header.opcode == wire::EventDone::kOpcode; });
    const int replied = client.position_of([&](const Heard& heard) {
        return heard.header.opcode == wire::Reply::kOpcode && heard.header.request == synced;
    });
    ASSERT_GE(done, 0);
    EXPECT_LT(done, replied);
    std::uint64_t bytes_before = 0;
    for (int i = 0; i < done; ++i) {
        if (client.all[static_cast<std::size_t>(i)].header.opcode == wire::Data::kOpcode)
            bytes_before += client.all[static_cast<std::size_t>(i)].payload.size();
    }
    EXPECT_EQ(bytes_before, 600000u);
}

TEST_F(SessionTest, QueriesAreAnsweredAtOnceAlsoBehindParkedFrames) {
    TestClient client(fake().table());
    client.start(1);
    fake().automatic = false;
    for (int i = 0; i < 1500; ++i) client.launch(1, 1);
    wire::StreamQuery query{};
    query.stream = 1;
    query.watch = 4;
    EXPECT_EQ(client.status_of(1, query), CUDA_ERROR_NOT_READY);
    EXPECT_TRUE(client.of(wire::StreamDone::kOpcode).empty());
    fake().automatic = true;
    fake().run_all();
    client.run_until([&] { return !client.of(wire::StreamDone::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::StreamDone::kOpcode)[0].as<wire::StreamDone>().watch, 4u);
    EXPECT_EQ(fake().log.size(), 1500u);
}

TEST_F(SessionTest, PulledCopyHoldsItsStreamUntilTheBytesCame) {
    TestClient client(fake().table());
    client.start(1);
    wire::CopyH2dPull copy{};
    copy.destination = kWindow;
    copy.size_bytes = 8192;
    copy.pull = 6;
    copy.stream = 1;
    client.send(1, copy);
    client.launch(1, 1);
    client.settle();
    ASSERT_EQ(client.of(wire::Pull::kOpcode).size(), 1u);
    EXPECT_TRUE(fake().log.empty());
    const std::vector<int> values(1024, 42);
    for (std::uint64_t offset : {0, 4096}) {
        wire::PullData data{};
        data.offset = offset;
        data.pull = 6;
        client.send(0, data, {}, bytes(values));
    }
    wire::StreamSync sync{};
    sync.stream = 1;
    EXPECT_EQ(client.status_of(1, sync), CUDA_SUCCESS);
    EXPECT_EQ(fake().log, (std::vector<std::string>{"h2d@1", "h2d@1", "noop@1"}));
    EXPECT_EQ(reinterpret_cast<int*>(kWindow)[2047], 42);
}

TEST_F(SessionTest, FenceIsDoneWhenEverythingBeforeItIs) {
    TestClient client(fake().table());
    client.start(2);
    fake().automatic = false;
    client.launch(1, 1);
    client.launch(1, 2);
    wire::Fence fence{};
    fence.token = 12;
    client.send(0, fence);
    client.settle();
    fake().run_one(1);
    fake().run_one(1);
    client.settle();
    EXPECT_TRUE(client.of(wire::FenceDone::kOpcode).empty());
    fake().run_all();
    client.run_until([&] { return !client.of(wire::FenceDone::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::FenceDone::kOpcode)[0].as<wire::FenceDone>().token, 12u);
}

TEST_F(SessionTest, WatchedEventKeepsItsRecordWhenItIsRecordedAgain) {
    TestClient client(fake().table());
    client.start(2);
    fake().automatic = false;
    wire::EventCreate create{};
    create.event = 3;
    client.send(1, create);
    const auto record = [&](std::uint32_t stream, std::uint32_t count) {
        wire::EventRecord fields{};
        fields.event = 3;
        fields.stream = stream;
        fields.record = count;
        client.send(1, fields);
    };
    record(1, 1);
    wire::EventQuery query{};
    query.event = 3;
    query.record = 1;
    EXPECT_EQ(client.status_of(1, query), CUDA_ERROR_NOT_READY);
    client.launch(1, 2);
    record(2, 2);
    client.settle();
    while (fake().run_one(1)) {
    }
    client.run_until([&] { return !client.of(wire::EventDone::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::EventDone::kOpcode)[0].as<wire::EventDone>().record, 1u);
    EXPECT_GT(fake().pending(), 0u);
}

TEST_F(SessionTest, SegmentsAreCopiedInPlace) {
    TestClient client(fake().table(), {}, transport::PathKind::shm);
    client.start();
    client.channel.offer_segment(4, 8192);
    wire::SegmentOpen open{};
    open.segment = 4;
    open.size_bytes = 8192;
    client.send(0, open);
    std::memset(client.channel.segment(4).data(), 7, 4096);
    wire::CopyH2dSegment in{};
    in.destination = kWindow;
    in.size_bytes = 4096;
    in.segment = 4;
    client.send(1, in);
    wire::CopyD2hSegment out{};
    out.source = kWindow;
    out.size_bytes = 4096;
    out.offset = 4096;
    out.segment = 4;
    EXPECT_EQ(client.status_of(1, out), CUDA_SUCCESS);
    EXPECT_EQ(client.channel.segment(4)[8191], std::byte{7});
    wire::SegmentClose close{};
    close.segment = 4;
    client.send(0, close);
    client.settle();
    out.offset = 4097;
    client.send(1, out);
    client.run_until([&] { return client.session.is_over() || client.channel.waiting() == 0; });
}

TEST_F(SessionTest, BoxesMovePackedBothWays) {
    for (const bool direct : {false, true}) {
        for (const auto kind : {transport::PathKind::tcp, transport::PathKind::shm}) {
            fake().reset(direct);
            TestClient client(fake().table(), {}, kind);
            client.start();
            std::vector<std::byte> values(300 * 100 * 20);
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 7 + i / 300);
            wire::CopyBoxH2d copy{};
            copy.place = kWindow + 12;
            copy.row_pitch = 512;
            copy.plane_pitch = 512 * 101;
            copy.width = 300;
            copy.height = 100;
            copy.depth = 20;
            for (copy.offset = 0; copy.offset < values.size(); copy.offset += 100000)  // in the middle of rows
                client.send(1, copy, {}, std::span(values).subspan(copy.offset, 100000));
            wire::CopyBoxD2h back{};
            back.place = copy.place;
            back.row_pitch = copy.row_pitch;
            back.plane_pitch = copy.plane_pitch;
            back.width = copy.width;
            back.height = copy.height;
            back.depth = copy.depth;
            back.transfer = 5;
            ASSERT_EQ(client.status_of(1, back), CUDA_SUCCESS);
            std::vector<std::byte> got(values.size());
            for (const Heard& heard : client.of(wire::Data::kOpcode))
                std::memcpy(got.data() + heard.as<wire::Data>().offset, heard.payload.data(), heard.payload.size());
            EXPECT_TRUE(got == values);
            EXPECT_EQ(reinterpret_cast<std::byte*>(kWindow)[12 + 512 + 3], values[303]);
            EXPECT_EQ(fake().log.empty(), direct);
            EXPECT_EQ(client.channel.lent_buffers(), 0u);
        }
    }
}

TEST_F(SessionTest, BoxesThatCannotBeEndTheSession) {
    wire::CopyBoxH2d good{};
    good.place = kWindow;
    good.row_pitch = 64;
    good.plane_pitch = 64 * 8;
    good.width = 64;
    good.height = 8;
    good.depth = 2;
    const std::vector<std::byte> row(64);
    const auto is_refused = [&](auto&& spoil) {
        fake().reset(false);
        TestClient client(fake().table());
        client.start();
        wire::CopyBoxH2d copy = good;
        spoil(copy);
        client.send(1, copy, {}, row);
        client.settle();
        return client.session.is_over();
    };
    EXPECT_FALSE(is_refused([](auto&) {}));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.row_pitch = 63; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.plane_pitch = 64 * 7; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.plane_pitch += 1; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.height = 1ull << 60; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.depth = 0; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.offset = 64 * 16 - 63; }));
    EXPECT_TRUE(is_refused([](auto& copy) { copy.offset = UINT64_MAX; }));
}

// ---------------------------------------------------------------------------------------------------- errors and
// bounds

TEST_F(SessionTest, FailureOfAnAsynchronousFrameIsPushed) {
    TestClient client(fake().table());
    client.start();
    fake().next_launch = CUDA_ERROR_INVALID_VALUE;
    client.launch(1);
    client.settle();
    const auto errors = client.of(wire::Error::kOpcode);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].header.context, 1u);
    EXPECT_EQ(errors[0].as<wire::Error>().status, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(errors[0].as<wire::Error>().failed_opcode, wire::Launch::kOpcode);
    EXPECT_EQ(wire::text_of(errors[0].tail<wire::Error>()), "LAUNCH failed: CUDA_ERROR_INVALID_VALUE (kernel noop)");
    EXPECT_FALSE(client.session.is_over());
}

TEST_F(SessionTest, StickyErrorIsToldOnce) {
    TestClient client(fake().table());
    client.start();
    fake().next_launch = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 100; ++i) client.launch(1);
    client.settle();
    ASSERT_EQ(client.of(wire::Error::kOpcode).size(), 1u);
    EXPECT_EQ(client.of(wire::Error::kOpcode)[0].as<wire::Error>().sticky, 1);
}

TEST_F(SessionTest, ContextThatCannotBeMadeFailsItsFrames) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    wire::CtxCreate create{};
    create.flags = CU_CTX_SCHED_YIELD;
    client.send(1, create);
    EXPECT_EQ(client.status_of(1, wire::CtxSync{}), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.of(wire::Error::kOpcode).size(), 1u);
}

TEST_F(SessionTest, DestroyedContextTakesItsObjectsAlong) {
    TestClient client(fake().table());
    client.start(2);
    client.launch(1, 1);
    client.send(1, wire::CtxDestroy{});
    client.make_context(2);
    EXPECT_EQ(client.status_of(2, wire::CtxSync{}), CUDA_SUCCESS);
    EXPECT_EQ(client.status_of(1, wire::CtxSync{}), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(fake().live_contexts(), 1);
}

// Threads with contexts of their own got CUDA_ERROR_INVALID_CONTEXT from a copy while another one destroyed its
// context: the loop was left without a current context and asked for events that way.
TEST_F(SessionTest, EndOfOneContextDoesNotDisturbTheWaitersOfAnother) {
    TestClient client(fake().table());
    client.start();
    client.make_context(2);
    client.settle();
    fake().automatic = false;
    client.launch(1);
    const std::uint32_t sync = client.ask(1, wire::CtxSync{});
    client.send(2, wire::CtxDestroy{});
    client.settle();
    EXPECT_EQ(fake().live_contexts(), 1);
    EXPECT_EQ(client.find_reply(sync), nullptr);
    fake().run_all();
    client.run_until([&] { return client.find_reply(sync) != nullptr; });
    EXPECT_EQ(client.find_reply(sync)->as<wire::Reply>().status, CUDA_SUCCESS);
}

TEST_F(SessionTest, ModulesAreUnloadedWithoutLeaks) {
    TestClient client(fake().table());
    client.start();
    for (std::uint32_t i = 100; i < 200; ++i) {
        client.load("image", i);
        wire::ModuleUnload unload{};
        unload.module = i;
        client.send(1, unload);
    }
    client.status_of(1, wire::CtxSync{});
    client.run_until([&] { return fake().live_modules() == 1; });
}

TEST_F(SessionTest, GeneratedCallRunsInItsStream) {
    TestClient client(fake().table());
    client.start(1);
    wire::MemsetD8Async memset{};
    memset.dstDevice = kWindow;
    memset.uc = 9;
    memset.N = 64;
    memset.stream = 1;
    client.send(1, memset);
    client.settle();
    EXPECT_EQ(fake().log, (std::vector<std::string>{"memset@1"}));
    EXPECT_EQ(reinterpret_cast<char*>(kWindow)[63], 9);
    wire::CtxGetLimit limit{};
    EXPECT_EQ(client.status_of(1, limit), CUDA_SUCCESS);
}

TEST_F(SessionTest, MalformedFramesEndTheSessionWithAReason) {
    const auto reason_of = [&](auto&& misbehave) {
        fake().reset();
        TestClient client(fake().table());
        client.start(1);
        misbehave(client);
        for (int i = 0; i < 100 && !client.session.is_over(); ++i) client.session.turn();
        EXPECT_EQ(client.session.end().kind, EndReason::Kind::protocol) << client.session.end().text;
        EXPECT_EQ(client.of(wire::Bye::kOpcode).size(), 1u);
        return client.session.end().text;
    };
    EXPECT_EQ(reason_of([](TestClient& c) { c.send(1, wire::Reply{}); }),
              "malformed frame (REPLY): a frame of the other direction");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  std::vector<std::byte> frame(24);
                  const wire::FrameHeader header{24, 9999, 0, 0, 0, 0, 0};
                  std::memcpy(frame.data(), &header, sizeof header);
                  c.channel.push(frame);
              }),
              "malformed frame (opcode 9999): unknown opcode");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  wire::MemMap map{};
                  map.address = kWindow + 1;
                  map.size_bytes = 2u << 20;
                  c.ask(0, map);
              }),
              "malformed frame (MEM_MAP): extent is not a multiple of the granularity");
    EXPECT_EQ(reason_of([](TestClient& c) {
                  wire::CopyH2dPull pull{};
                  pull.destination = kWindow;
                  pull.size_bytes = 16;
                  pull.pull = 1;
                  c.send(1, pull);
                  c.run_until([&] { return !c.of(wire::Pull::kOpcode).empty(); });
                  wire::PullData data{};
                  data.pull = 1;
                  data.size_bytes = 32;
                  c.send(0, data, std::vector<std::byte>(32));
              }),
              "malformed frame (PULL_DATA): not the next piece of the pull");
}

TEST_F(SessionTest, GoodbyeEndsTheSession) {
    TestClient client(fake().table());
    client.start();
    client.send(0, wire::Goodbye{});
    client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::goodbye);
}

TEST_F(SessionTest, GoneClientEndsTheSession) {
    TestClient client(fake().table());
    client.start();
    client.channel.hang_up();
    client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::client_gone);
}

// --- host functions and graphs

TEST_F(SessionTest, AHostFunctionHoldsItsStreamUntilTheClientHasAnswered) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    wire::StreamCreate create{};
    create.stream = 3;
    create.flags = CU_STREAM_NON_BLOCKING;
    client.send(1, create);
    wire::HostFunction function{};
    function.call = 40;
    function.stream = 3;
    client.send(1, function);
    wire::StreamSync sync{};
    sync.stream = 3;
    const std::uint32_t waiting = client.ask(1, sync);
    client.run_until([&] { return !client.of(wire::HostCall::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::HostCall::kOpcode)[0].as<wire::HostCall>().call, 40u);
    sync.stream = 0;
    EXPECT_EQ(client.status_of(1, sync), CUDA_SUCCESS) << "another stream goes on";
    EXPECT_EQ(client.find_reply(waiting), nullptr);
    wire::HostDone done{};
    done.call = 40;
    client.send(1, done);
    client.run_until([&] { return client.find_reply(waiting) != nullptr; });
}

TEST_F(SessionTest, AnAnswerThatWasNotAskedForEndsTheSession) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    fake().automatic = false;
    ASSERT_EQ(client.map(kWindow, 2u << 20), CUDA_SUCCESS);
    (void)client.load(".visible .global .align 4 .b8 counter[5000];");
    const AddParameters parameters{kWindow, kWindow, kWindow, 1};
    client.launch(0, 0, std::as_bytes(std::span(&parameters, 1)).first(28));
    wire::HostFunction function{};
    function.call = 40;
    client.send(1, function);
    wire::HostDone done{};
    done.call = 40;
    client.send(1, done);
    for (int i = 0; i < 100 && !client.session.is_over(); ++i) client.session.turn();
    EXPECT_EQ(client.session.end().kind, EndReason::Kind::protocol);
    fake().automatic = true;
    fake().run_all();
}

class GraphTest : public SessionTest {
  protected:
    template <typename Frame>
    static std::vector<std::byte> inner(const Frame& fields, std::span<const std::byte> tail = {}) {
        std::vector<std::byte> bytes(wire::encoded_size<Frame>(tail.size()));
        *wire::begin_frame<Frame>(bytes.data(), 1, 0, 0, tail.size()) = fields;
        if (!tail.empty()) std::memcpy(wire::tail_of<Frame>(bytes.data()), tail.data(), tail.size());
        return bytes;
    }
    static void node(TestClient& client, std::uint32_t index, const std::vector<std::byte>& frame) {
        wire::GraphNode fields{};
        fields.graph = 50;
        fields.node = index;
        fields.size_bytes = static_cast<std::uint32_t>(frame.size());
        client.send(1, fields, frame);
    }
    static wire::GraphCreate create(std::uint32_t nodes) {
        wire::GraphCreate fields{};
        fields.graph = 50;
        fields.node_count = nodes;
        return fields;
    }
    static std::vector<std::byte> fill(std::uint64_t to, std::uint8_t value) {
        wire::MemsetD2D8Async fields{};
        fields.dstDevice = to;
        fields.uc = value;
        fields.Width = 16;
        fields.Height = 1;
        return inner(fields);
    }
    static void edge(TestClient& client, std::uint32_t from, std::uint32_t to) {
        wire::GraphEdges fields{};
        fields.graph = 50;
        fields.count = 1;
        const std::uint32_t pair[] = {from, to};
        client.send(1, fields, std::as_bytes(std::span(pair)));
    }
    static bool ends(TestClient& client) {
        const auto end = Clock::now() + std::chrono::seconds(10);
        while (!client.session.is_over() && Clock::now() < end)
            if (!client.session.turn()) client.session.wait();
        return client.session.end().kind == EndReason::Kind::protocol;
    }
};

TEST_F(GraphTest, ALaunchWaitsForTheClientInItsMiddle) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    client.send(1, create(2));
    wire::HostFunction function{};
    function.call = 41;
    node(client, 0, inner(function));
    function.call = 42;
    node(client, 1, inner(function));
    edge(client, 0, 1);
    wire::GraphInstantiate ready{};
    ready.graph = 50;
    ASSERT_EQ(client.status_of(1, ready), CUDA_SUCCESS);
    wire::GraphLaunch launch{};
    launch.graph = 50;
    for (int round = 0; round < 2; ++round) {
        client.send(1, launch);
        wire::CtxSync sync{};
        const std::uint32_t waiting = client.ask(1, sync);
        for (const std::uint32_t call : {41u, 42u}) {
            const std::size_t before = static_cast<std::size_t>(round) * 2 + call - 41;
            client.run_until([&] { return client.of(wire::HostCall::kOpcode).size() > before; });
            EXPECT_EQ(client.of(wire::HostCall::kOpcode)[before].as<wire::HostCall>().call, call);
            EXPECT_EQ(client.find_reply(waiting), nullptr);
            wire::HostDone done{};
            done.call = call;
            client.send(1, done);
        }
        client.run_until([&] { return client.find_reply(waiting) != nullptr; });
    }
}

TEST_F(GraphTest, GraphsThatCannotBeAreRefused) {
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(0xffffffff));
        EXPECT_TRUE(ends(client));
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        edge(client, 1, 0);
        EXPECT_TRUE(ends(client)) << "a circle could be made of such edges";
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        node(client, 0, inner(wire::CtxDestroy{}));
        EXPECT_TRUE(ends(client)) << "not every frame can be a node";
    }
    {
        TestClient client(fake().table());
        ASSERT_EQ(client.hello(), CUDA_SUCCESS);
        client.make_context();
        client.send(1, create(2));
        node(client, 2, fill(kWindow, 1));
        EXPECT_TRUE(ends(client));
    }
}

TEST_F(GraphTest, AGraphEndsWithItsContext) {
    TestClient client(fake().table());
    ASSERT_EQ(client.hello(), CUDA_SUCCESS);
    client.make_context();
    client.send(1, create(1));
    wire::GraphInstantiate ready{};
    ready.graph = 50;
    ASSERT_EQ(client.status_of(1, ready), CUDA_SUCCESS);
    client.send(1, wire::CtxDestroy{});
    client.settle();
    wire::CtxCreate again{};
    client.send(2, again);
    wire::GraphLaunch launch{};
    launch.graph = 50;
    client.send(2, launch);
    client.run_until([&] { return !client.of(wire::Error::kOpcode).empty(); });
    EXPECT_EQ(client.of(wire::Error::kOpcode).back().as<wire::Error>().status, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_FALSE(client.session.is_over());
}

}  // namespace
}  // namespace weft::executor
