// A session against a driver whose work completes when the test says so: what each frame does, in which order, and what
// is told.
#include "executor/session.h"

#include <gtest/gtest.h>

#include "executor/testing_client.h"
#include "executor/testing_driver.h"

namespace weft::executor {
namespace {

using testing::AddParameters;
using testing::FakeDriver;
using testing::Heard;
using testing::TestClient;
constexpr std::uint64_t kWindow = TestClient::kWindow;

class SessionTest : public testing::DriverTest {};

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

TEST_F(SessionTest, MemoryWithoutAnAddressCountsUntilHandleAndMappingAreGone) {
    TestClient client(fake().table());
    client.start();
    constexpr std::uint64_t kPlace = 0x530000000000, kSize = 4u << 20;
    wire::AddressReserve reserve{};
    reserve.address = kPlace;
    reserve.size_bytes = kSize;
    ASSERT_EQ(client.status_of(0, reserve), CUDA_SUCCESS);
    const std::uint64_t before = client.session.peak_memory_bytes();
    wire::PhysicalCreate create{};
    create.physical = 9;
    create.size_bytes = kSize;
    ASSERT_EQ(client.status_of(0, create), CUDA_SUCCESS);
    EXPECT_EQ(client.session.peak_memory_bytes(), before + kSize);
    wire::PhysicalMap map{};
    map.address = kPlace;
    map.physical = 9;
    ASSERT_EQ(client.status_of(0, map), CUDA_SUCCESS);
    wire::PhysicalAccess access{};
    access.address = kPlace;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(client.status_of(0, access), CUDA_SUCCESS);
    EXPECT_TRUE(fake().is_mapped(kPlace, kSize));
    wire::PhysicalRelease release{};
    release.physical = 9;
    client.send(0, release);
    wire::PhysicalUnmap unmap{};
    unmap.address = kPlace;
    ASSERT_EQ(client.status_of(0, unmap), CUDA_SUCCESS);
    EXPECT_FALSE(fake().is_mapped(kPlace, kSize));
    wire::AddressFree free{};
    free.address = kPlace;
    free.size_bytes = kSize;
    client.send(0, free);
    create.physical = 10;
    EXPECT_EQ(client.status_of(0, create), CUDA_SUCCESS);
    EXPECT_EQ(client.session.peak_memory_bytes(), before + kSize) << "what was gone was given back";
    client.send(0, unmap);
    client.settle();
    EXPECT_TRUE(client.session.is_over()) << "no such mapping";
}

}  // namespace
}  // namespace weft::executor
