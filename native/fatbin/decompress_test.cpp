#include "fatbin/decompress.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fatbin/testing_fatbin.h"

namespace weft::fatbin {
namespace {

Result<std::vector<std::byte>> unpack(const TestEntry& entry) {
    const std::string image = build_fatbin({entry});
    return decompress(*Reader(bytes_of(image)).next());
}

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "abcd" as literals, then a match of 12 at distance 4, then "xyz".
const std::string kLz4 = std::string("\x48") + "abcd" + std::string("\x04\x00", 2) + "\x30" + "xyz";
const std::string kPlain = "abcdabcdabcdabcdxyz";

TEST(Lz4, RepeatsWhatMatchesOverlap) {
    const auto plain = unpack({.flags = kFlagLz4, .payload = kLz4, .plain_bytes = kPlain.size()});
    ASSERT_TRUE(plain) << plain.status().text();
    EXPECT_EQ(kPlain, text_of(*plain));
}

TEST(Lz4, ReadsLongLengths) {
    // 300 literals (15 + 255 + 30), then a match of 4 + 15 + 255 + 1 at distance 1.
    std::string in = "\xff\xff\x1e" + std::string(300, 'q') + std::string("\x01\x00\xff\x01", 4) + "\x10" + "e";
    const auto plain = unpack({.flags = kFlagLz4, .payload = in, .plain_bytes = 576});
    ASSERT_TRUE(plain) << plain.status().text();
    EXPECT_EQ(std::string(575, 'q') + "e", text_of(*plain));
}

TEST(Lz4, RefusesEveryCutAndEveryOtherSize) {
    for (std::size_t size = 0; size < kLz4.size(); ++size)
        EXPECT_FALSE(unpack({.flags = kFlagLz4, .payload = kLz4.substr(0, size), .plain_bytes = kPlain.size()}))
            << size;
    for (const std::size_t size : {kPlain.size() - 1, kPlain.size() + 1})
        EXPECT_FALSE(unpack({.flags = kFlagLz4, .payload = kLz4, .plain_bytes = size}));
}

TEST(Lz4, RefusesMatchesFromBeforeTheStart) {
    std::string in = kLz4;
    in[5] = '\x05';
    EXPECT_FALSE(unpack({.flags = kFlagLz4, .payload = in, .plain_bytes = kPlain.size()}));
    in[5] = '\x00';
    EXPECT_FALSE(unpack({.flags = kFlagLz4, .payload = in, .plain_bytes = kPlain.size()})) << "distance 0";
}

TEST(Decompress, RefusesWhatWouldGrowTooLarge) {
    const auto plain = unpack({.flags = kFlagLz4, .payload = kLz4, .plain_bytes = kMaxPlainBytes + 1});
    ASSERT_FALSE(plain);
    EXPECT_EQ(ErrorCode::invalid_argument, plain.status().code());
}

TEST(Decompress, SaysWhatToDoAboutUnknownCompression) {
    const auto plain = unpack({.payload = "abc", .plain_bytes = 9});
    ASSERT_FALSE(plain);
    EXPECT_EQ(ErrorCode::unsupported, plain.status().code());
    EXPECT_NE(std::string::npos, plain.status().text().find("-no-compress"));
}

// A frame of one raw block (RFC 8878): magic, a header that says 5 bytes in a single segment, last block, "hello".
const std::string kZstd = std::string("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00", 9) + "hello";

TEST(Zstd, IsReadWithTheSystemsLibrary) {
    const auto plain = unpack({.flags = kFlagZstd, .payload = kZstd, .plain_bytes = 5});
    void* library = dlopen("libzstd.so.1", RTLD_NOW);
    if (library == nullptr) {
        ASSERT_FALSE(plain);
        EXPECT_NE(std::string::npos, plain.status().text().find("libzstd.so.1"));
        return;
    }
    ASSERT_TRUE(plain) << plain.status().text();
    EXPECT_EQ("hello", text_of(*plain));
    EXPECT_FALSE(unpack({.flags = kFlagZstd, .payload = kZstd, .plain_bytes = 4}));
    EXPECT_FALSE(unpack({.flags = kFlagZstd, .payload = kZstd.substr(0, 12), .plain_bytes = 5}));
    EXPECT_FALSE(unpack({.flags = kFlagZstd, .payload = "hello world", .plain_bytes = 5}));
    dlclose(library);
}

}  // namespace
}  // namespace weft::fatbin
