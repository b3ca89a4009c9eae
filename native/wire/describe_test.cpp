#include "wire/describe.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "base/random.h"

namespace weft::wire {
namespace {

std::string random_text(Random& random, std::size_t limit) {
    std::string text(random.below(limit), ' ');
    for (char& c : text) c = static_cast<char>(random.next());
    return text;
}

template <std::size_t N>
std::array<std::uint8_t, N> random_array(Random& random) {
    std::array<std::uint8_t, N> out;
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random.next());
    return out;
}

AttributeTable random_attributes(Random& random) {
    AttributeTable table;
    for (std::size_t id = 0; id < 40; ++id) {
        if (random.below(2) == 0) table.set(id, static_cast<std::int32_t>(random.next()));
    }
    return table;
}

HelloReply random_hello(Random& random) {
    HelloReply reply{
        1, static_cast<std::int32_t>(random.next()), random.next(), random_text(random, 9), random_text(random, 30),
        {}};
    for (std::size_t i = random.below(4); i > 0; --i) {
        reply.devices.push_back({static_cast<std::uint32_t>(i), random_text(random, 20), random_array<16>(random),
                                 random.next(), random.next(), random_attributes(random), "0000:01:00.0", 0, -5, 1});
    }
    return reply;
}

ModuleReply random_module(Random& random) {
    ModuleReply reply;
    reply.need_image = random.below(2) == 0;
    reply.info_log = random_text(random, 50);
    reply.error_log = random_text(random, 50);
    for (std::size_t i = random.below(5); i > 0; --i) {
        FunctionInfo function{random_text(random, 30), random_attributes(random), {}};
        for (std::size_t k = random.below(6); k > 0; --k)
            function.parameters.push_back({static_cast<std::uint32_t>(random.next()), 8});
        reply.functions.push_back(function);
        reply.globals.push_back({random_text(random, 20), {random.next(), random.next()}});
        reply.reserve.push_back({random.next(), random.next()});
    }
    return reply;
}

JitOptions random_options(Random& random) {
    JitOptions options;
    for (std::size_t i = random.below(5); i > 0; --i)
        options.push_back({static_cast<std::uint32_t>(random.next()), random.next()});
    return options;
}

LinkRequest random_link_request(Random& random) {
    LinkRequest request{random_options(random), {}};
    for (std::size_t i = random.below(4); i > 0; --i) {
        request.inputs.push_back(
            {1, random_array<32>(random), random.next(), random_text(random, 20), random_options(random)});
    }
    return request;
}

LinkReply random_link_reply(Random& random) {
    return {{1, 2, static_cast<std::uint32_t>(random.next())},
            random.next(),
            random_array<32>(random),
            random_text(random, 9),
            random_text(random, 9)};
}

// Round trip with and without padding; every truncation by 8 or more bytes is refused; no change of a byte crashes.
template <typename Make, typename Decode>
void check_codec(Make&& make, Decode&& decode) {
    Random random(20261121);
    for (int round = 0; round < 200; ++round) {
        const auto value = make(random);
        std::vector<std::byte> bytes = encode(value);
        for (std::size_t size = 0; size < bytes.size(); ++size)
            EXPECT_FALSE(decode(std::span(bytes).first(size))) << size;
        auto back = decode(bytes);
        ASSERT_TRUE(back) << back.status().text();
        EXPECT_EQ(*back, value);
        for (int change = 0; change < 50; ++change) {
            auto broken = bytes;
            if (!broken.empty()) broken[random.below(broken.size())] = static_cast<std::byte>(random.next());
            (void)decode(broken);
        }
        while (bytes.size() % 8 != 0) bytes.push_back(std::byte{});
        EXPECT_TRUE(decode(bytes));
        bytes.resize(bytes.size() + 8);
        EXPECT_FALSE(decode(bytes));
    }
}

TEST(Describe, HelloReply) { check_codec(random_hello, decode_hello_reply); }
TEST(Describe, ModuleReply) { check_codec(random_module, decode_module_reply); }
TEST(Describe, JitOptions) { check_codec(random_options, decode_jit_options); }
TEST(Describe, LinkRequest) { check_codec(random_link_request, decode_link_request); }
TEST(Describe, LinkReply) { check_codec(random_link_reply, decode_link_reply); }

TEST(Describe, CountsAreCheckedBeforeAnythingIsAllocated) {
    ByteWriter out;
    out.u32(0xffffffff);
    EXPECT_FALSE(decode_jit_options(out.bytes()));
    ByteWriter link;
    link.u32(0);
    link.u32(kMaxLinkInputs + 1);
    link.raw(std::vector<std::byte>((kMaxLinkInputs + 1) * 52));
    EXPECT_FALSE(decode_link_request(link.bytes()));
}

TEST(Describe, LogsAreCutAtTheirLimit) {
    LinkReply reply;
    reply.info_log = std::string(kMaxLogBytes + 100, 'x');
    auto back = decode_link_reply(encode(reply));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->info_log.size(), kMaxLogBytes);
}

TEST(Describe, AttributesKnowWhatIsAbsent) {
    AttributeTable table;
    table.set(3, 0);
    EXPECT_EQ(table.get(3), 0);
    EXPECT_EQ(table.get(2), std::nullopt);
    EXPECT_EQ(table.get(1000), std::nullopt);
}

}  // namespace
}  // namespace weft::wire
