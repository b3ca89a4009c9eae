// SHA-256 against the published vectors, both compressions, and every way to cut a message into updates.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/random.h"

namespace weft {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Sha256, gives_the_published_digests) {
    EXPECT_EQ(to_hex(sha256(bytes_of(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(to_hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, hashes_a_million_letters) {
    std::string letters(1'000'000, 'a');
    EXPECT_EQ(to_hex(sha256(bytes_of(letters))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, is_the_same_however_the_message_is_cut) {
    Random random(7);
    std::vector<std::byte> message(1000);
    for (auto& byte : message) byte = static_cast<std::byte>(random.next());
    for (std::size_t size = 0; size < 200; ++size) {
        std::span<const std::byte> rest(message.data(), size);
        Sha256Digest whole = sha256(rest);
        Sha256 hash;
        while (!rest.empty()) {
            std::size_t take = 1 + random.below(rest.size());
            hash.update(rest.first(take));
            rest = rest.subspan(take);
        }
        ASSERT_EQ(to_hex(hash.finish()), to_hex(whole)) << size;
    }
}

TEST(Sha256, is_the_same_with_and_without_special_instructions) {
    Random random(8);
    std::vector<std::uint8_t> blocks(64 * 9);
    for (auto& byte : blocks) byte = static_cast<std::uint8_t>(random.next());
    std::uint32_t portable[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::uint32_t best[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    sha256_detail::compress_portable(portable, blocks.data(), 9);
    sha256_detail::best_compress()(best, blocks.data(), 9);
    EXPECT_TRUE(std::equal(portable, portable + 8, best));
}

}  // namespace
}  // namespace weft
