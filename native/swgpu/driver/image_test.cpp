#include "swgpu/driver/image.h"

#include <gtest/gtest.h>

#include "fatbin/testing_fatbin.h"

#include <cstring>
#include <random>
#include <vector>

namespace weft::swdriver {
namespace {

constexpr char kText[] = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";

void put(std::string* out, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// An entry: kind, device, flags and payload vary; the other fields are as nvcc writes them.
std::string entry(unsigned kind, unsigned sm, std::uint64_t flags, std::string payload) {
    std::string out;
    put(&out, kind, 2);
    put(&out, 0x0101, 2);
    put(&out, 64, 4);
    put(&out, payload.size(), 8);
    put(&out, (flags & 0xa000) != 0 ? payload.size() : 0, 4);
    put(&out, 0, 4);
    put(&out, 0, 2);
    put(&out, 7, 2);
    put(&out, sm, 4);
    put(&out, 0, 8);
    put(&out, flags, 8);
    put(&out, 0, 16);
    return out + payload;
}

std::string fatbin(const std::string& entries) {
    std::string out;
    put(&out, 0xba55ed50, 4);
    put(&out, 1, 2);
    put(&out, 16, 2);
    put(&out, entries.size(), 8);
    return out + entries;
}

CUresult kind_of(const std::string& image) { return find_texts(image.data(), image.size(), 80).result; }

TEST(Images, text_is_taken_as_it_is) {
    const Texts found = find_texts(kText, 0, 80);
    ASSERT_EQ(found.result, CUDA_SUCCESS);
    ASSERT_EQ(found.texts.size(), 1u);
    EXPECT_EQ(found.texts[0], kText);
    EXPECT_EQ(find_texts(kText, sizeof kText, 80).texts[0], kText);
}

TEST(Images, short_texts_are_not_read_past_their_end) {
    for (const char* text : {"", "a", "ab", "abc"}) {
        std::vector<char> exact(text, text + std::strlen(text) + 1);
        find_texts(exact.data(), 0, 80);
    }
}

TEST(Images, the_newest_usable_ptx_of_a_fat_binary_is_chosen) {
    const std::string image =
        fatbin(entry(2, 80, 0x11, std::string(8, 'x')) + entry(1, 50, 0x11, std::string("old") + '\0') +
               entry(1, 75, 0x11, std::string("new") + '\0') + entry(1, 90, 0x11, std::string("too") + '\0'));
    const Texts found = find_texts(image.data(), 0, 80);
    ASSERT_EQ(found.result, CUDA_SUCCESS);
    EXPECT_EQ(found.texts[0], "new");
}

TEST(Images, unusable_ones_say_why) {
    EXPECT_EQ(kind_of(fatbin(entry(2, 80, 0x11, "machine code"))), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(kind_of(fatbin(entry(1, 90, 0x11, "newer"))), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(kind_of(fatbin("")), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(kind_of(std::string("\x7f"
                                  "ELF\x02\x01\x01\0\0\0\0\0",
                                  12)),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(kind_of(std::string("\x01\x02\x03\x04garbage")), CUDA_ERROR_INVALID_IMAGE);
}

TEST(Images, compressed_ptx_is_read) {
    const weft::fatbin::TestEntry good{.flags = weft::fatbin::kFlagLz4,
                                       .payload = std::string("\x18") + "p" + std::string("\x01\x00\x10\x00", 4),
                                       .plain_bytes = 14};
    const std::string image = weft::fatbin::build_fatbin({good});
    const Texts found = find_texts(image.data(), image.size(), 80);
    ASSERT_EQ(found.result, CUDA_SUCCESS) << found.log;
    EXPECT_EQ(found.texts[0], std::string(13, 'p'));
}

TEST(Images, damaged_compressed_ptx_is_no_image) {
    const std::string image =
        weft::fatbin::build_fatbin({{.flags = weft::fatbin::kFlagLz4, .payload = "rubbish!", .plain_bytes = 14}});
    const Texts found = find_texts(image.data(), image.size(), 80);
    EXPECT_EQ(found.result, CUDA_ERROR_INVALID_IMAGE);
    EXPECT_NE(found.log.find("compressed"), std::string::npos);
}

TEST(Images, linked_images_come_apart_again) {
    const std::vector<std::string> texts = {"one", "", "three\nlines\nhere"};
    const std::string image = pack_linked(texts);
    const Texts found = find_texts(image.c_str(), 0, 80);
    ASSERT_EQ(found.result, CUDA_SUCCESS);
    ASSERT_EQ(found.texts.size(), 3u);
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(found.texts[i], texts[i]);
}

// Copies of exactly the image's size, so that a sanitizer sees every byte read too many.
TEST(Images, damage_is_survived) {
    std::mt19937 random(5);
    const std::vector<std::string> seeds = {
        fatbin(entry(1, 50, 0x11, kText) + entry(2, 80, 0, "code") + entry(1, 75, 0x11, kText)),
        pack_linked(std::vector<std::string>{kText, kText}), kText};
    for (int round = 0; round < 30000; ++round) {
        std::string image = seeds[random() % seeds.size()];
        for (unsigned changes = random() % 4; changes > 0; --changes)
            image[random() % image.size()] = static_cast<char>(random());
        if (random() % 2 == 0) image.resize(1 + random() % image.size());
        std::vector<char> exact(image.begin(), image.end());
        if (exact.size() >= 16 && std::memcmp(exact.data(), "\xb1\x43\x62\x46", 4) == 0)
            continue;  // a wrapper holds a pointer
        for (std::string_view text : find_texts(exact.data(), exact.size(), 80).texts) {
            ASSERT_GE(text.data(), exact.data());
            ASSERT_LE(text.data() + text.size(), exact.data() + exact.size());
        }
    }
}

TEST(JitLogs, are_cut_to_the_buffer_and_ended) {
    char buffer[8];
    std::memset(buffer, 'x', sizeof buffer);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {buffer, reinterpret_cast<void*>(std::size_t{5})};
    JitOptions jit(2, options, values);
    ASSERT_EQ(jit.check(), CUDA_SUCCESS);
    jit.report(CUDA_ERROR_INVALID_PTX, "a long text");
    EXPECT_STREQ(buffer, "a lo");
    EXPECT_EQ(buffer[5], 'x');
    EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), 5u);
    EXPECT_EQ(JitOptions(1, nullptr, nullptr).check(), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace weft::swdriver
