#include "base/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

TEST(CopyStreaming, copies_every_byte_at_any_alignment) {
    std::vector<unsigned char> source(weft::kStreamingBytes * 2 + 4096);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, weft::kStreamingBytes - 1, weft::kStreamingBytes,
                             weft::kStreamingBytes + 777}) {
        for (std::size_t offset : {0, 1, 31, 64, 100}) {
            std::vector<unsigned char> target(size + 256, 0xee);
            weft::copy_streaming(target.data() + offset, source.data() + offset / 2, size);
            EXPECT_EQ(std::memcmp(target.data() + offset, source.data() + offset / 2, size), 0)
                << size << " " << offset;
            EXPECT_EQ(target[offset + size], 0xee);
            if (offset > 0) {
                EXPECT_EQ(target[offset - 1], 0xee);
            }
        }
    }
}
