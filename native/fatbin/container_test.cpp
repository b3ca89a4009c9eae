#include "fatbin/container.h"

#include <gtest/gtest.h>

#include "fatbin/testing_fatbin.h"

namespace weft::fatbin {
namespace {

TEST(FatbinReader, GivesEveryEntryWithItsPayload) {
    const std::string image =
        build_fatbin({{.sm = 70, .payload = "first"}, {.kind = 2, .sm = 80, .payload = "second one"}});
    Reader reader(bytes_of(image));
    const auto first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(Kind::ptx, first->kind);
    EXPECT_EQ(70u, first->sm);
    EXPECT_EQ(8u, first->payload.size()) << "a plain payload has its padding";
    const auto second = reader.next();
    ASSERT_TRUE(second);
    EXPECT_EQ(Kind::elf, second->kind);
    EXPECT_EQ(Compression::none, second->compression());
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.is_damaged());
}

TEST(FatbinReader, TellsHowAnEntryIsCompressed) {
    const std::string image = build_fatbin({{.flags = kFlagLz4, .payload = "abc", .plain_bytes = 10},
                                            {.flags = kFlagZstd, .payload = "abc", .plain_bytes = 10},
                                            {.payload = "abc", .plain_bytes = 10}});
    Reader reader(bytes_of(image));
    const auto lz4 = reader.next();
    EXPECT_EQ(Compression::lz4, lz4->compression());
    EXPECT_EQ(3u, lz4->payload.size()) << "without the padding";
    EXPECT_EQ(10u, lz4->plain_bytes);
    EXPECT_EQ(Compression::zstd, reader.next()->compression());
    EXPECT_EQ(Compression::unknown, reader.next()->compression());
}

TEST(FatbinReader, FindsDamageAtEveryCut) {
    const std::string image = build_fatbin({{.payload = "12345678"}});
    for (std::size_t size = 0; size < image.size(); ++size) {
        Reader reader(bytes_of(image).first(size));
        EXPECT_TRUE(reader.is_damaged()) << size;
        EXPECT_FALSE(reader.next());
    }
}

TEST(FatbinReader, RefusesSizesThatDoNotFit) {
    for (const std::size_t field : {4u, 8u, 9u, 15u, 16u}) {  // header size, payload size, compressed size
        std::string image = build_fatbin({{.flags = kFlagLz4, .payload = "12345678", .plain_bytes = 9}});
        image[16 + field + (field == 4 || field == 16 ? 3 : 0)] = '\x7f';
        Reader reader(bytes_of(image));
        EXPECT_FALSE(reader.next()) << field;
        EXPECT_TRUE(reader.is_damaged()) << field;
    }
}

}  // namespace
}  // namespace weft::fatbin
