#include "base/box.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

std::vector<std::byte> counting(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    return bytes;
}

TEST(Box, AnyCutOfThePackedBytesIsCoveredOnceByItsParts) {
    const Box box{5, 3, 4};
    for (std::uint64_t offset = 0; offset < 60; ++offset) {
        for (std::uint64_t size = 1; size <= 60 - offset; ++size) {
            std::uint64_t next = offset;
            for (const BoxPart& part : parts_of(box, offset, size)) {
                EXPECT_EQ(part.packed_offset, next);
                EXPECT_EQ((part.z * box.height + part.y) * box.width + part.x, next);
                EXPECT_LE(part.x + part.size.width, box.width);
                EXPECT_LE(part.y + part.size.height, box.height);
                EXPECT_LE(part.z + part.size.depth, box.depth);
                next += *part.size.bytes();
            }
            EXPECT_EQ(next, offset + size);
        }
    }
}

TEST(Box, PackedPiecesPutTogetherAreTheBox) {
    const Box box{13, 4, 3};
    const Pitches pitches{20, 100};
    const auto source = counting(*pitches.span(box));
    for (const std::uint64_t limit : {1, 5, 13, 14, 30, 52, 60, 1000}) {
        std::vector<std::byte> target(source.size()), packed(*box.bytes());
        std::uint64_t offset = 0;
        while (const std::uint64_t size = next_piece(box, offset, limit)) {
            EXPECT_LE(size, limit);
            EXPECT_EQ(parts_of(box, offset, size).count, 1u) << limit;
            pack(packed.data() + offset, source.data(), pitches, box, offset, size);
            unpack(target.data(), pitches, box, offset, packed.data() + offset, size);
            offset += size;
        }
        EXPECT_EQ(offset, packed.size());
        for (std::size_t z = 0; z < 3; ++z) {
            for (std::size_t y = 0; y < 4; ++y) {
                for (std::size_t x = 0; x < 13; ++x)
                    EXPECT_EQ(target[z * 100 + y * 20 + x], source[z * 100 + y * 20 + x]);
            }
        }
        EXPECT_EQ(target[13], std::byte{0}) << "padding is left alone";
    }
}

TEST(Box, SizesThatDoNotFitAreFound) {
    EXPECT_FALSE((Box{1ull << 40, 1ull << 40, 1}).bytes());
    EXPECT_FALSE((Pitches{1ull << 60, 0}).span({1, 1ull << 10, 1}));
    EXPECT_FALSE((Pitches{0, UINT64_MAX}).span({2, 1, 2}));
    EXPECT_EQ((Pitches{10, 50}).span({4, 5, 2}), 50u + 40 + 4);
}

}  // namespace
}  // namespace weft
