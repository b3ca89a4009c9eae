#include "shim/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::shim {
namespace {

TEST(Image, PtxEndsWithItsZeroByte) {
    const char* text = "\n// made by a compiler\n.version 8.0\n.target sm_80\n";
    const auto image = inspect_image(text);
    ASSERT_TRUE(image);
    EXPECT_EQ(image->kind, ImageKind::ptx);
    EXPECT_EQ(image->bytes.size(), std::strlen(text) + 1);
}

TEST(Image, ElfIsAsLongAsItsHeadersSay) {
    std::vector<unsigned char> bytes(1000);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_shoff = 200;
    header.e_shnum = 2;
    header.e_shentsize = sizeof(Elf64_Shdr);
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = 500;
    section.sh_size = 300;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + 200 + sizeof section, &section, sizeof section);
    const auto image = inspect_image(bytes.data());
    ASSERT_TRUE(image);
    EXPECT_EQ(image->kind, ImageKind::elf);
    EXPECT_EQ(image->bytes.size(), 800u);
}

TEST(Image, FatBinaryAndItsWrapper) {
    struct {
        std::uint32_t magic = 0xba55ed50;
        std::uint16_t version = 1, header_bytes = 16;
        std::uint64_t fat_bytes = 64;
        char rest[64] = {};
    } fat;
    struct {
        std::uint32_t magic = 0x466243b1, version = 1;
        const void* data;
        const void* file = nullptr;
    } wrapper{.data = &fat};
    for (const void* pointer : {static_cast<const void*>(&fat), static_cast<const void*>(&wrapper)}) {
        const auto image = inspect_image(pointer);
        ASSERT_TRUE(image);
        EXPECT_EQ(image->kind, ImageKind::fatbin);
        EXPECT_EQ(image->bytes.size(), 80u);
        EXPECT_EQ(static_cast<const void*>(image->bytes.data()), &fat);
    }
}

TEST(Image, GarbageIsRefused) {
    const unsigned char garbage[64] = {0x01, 0x02, 0x03};
    EXPECT_FALSE(inspect_image(garbage));
    EXPECT_FALSE(inspect_image(""));
    const std::uint32_t lone_magic[16] = {0xba55ed50, 0, 0xffffffff, 0xffffffff};
    EXPECT_FALSE(inspect_image(lone_magic));
}

}  // namespace
}  // namespace weft::shim
