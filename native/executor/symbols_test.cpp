// Names and parameter layouts in PTX, cubins and fat binaries, and damaged inputs.
#include "executor/symbols.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"

namespace weft::executor {
namespace {

constexpr std::string_view kPtx = R"(
.version 8.0
.target sm_80  // a comment with .entry inside
.address_size 64
.extern .global .align 4 .u32 elsewhere;
.visible .global .align 4 .f32 scale = 0f3F800000;
.const .align 8 .b8 table[16] = {1, 2, 3};
.global .u32 one, two;
.func helper(.param .b64 a) { ret; }
.visible .entry add(
    .param .u64 .ptr .global .align 16 a,
    .param .u32 n,
    .param .align 8 .b8 pair[12],
    .param .u8 flag
) .maxntid 128, 1, 1
{
    .shared .align 4 .b8 tile[64];
    .reg .b32 %r<4>;
    ret;
}
/* .entry hidden() {} */
.entry none() { ret; }
)";

TEST(SymbolsPtx, FindsKernelsParametersAndGlobals) {
    ImageSymbols symbols;
    scan_ptx(kPtx, &symbols);
    ASSERT_EQ(symbols.kernels.size(), 2u);
    EXPECT_EQ(symbols.kernels[0].name, "add");
    const std::vector<wire::ParameterInfo> expected{{0, 8}, {8, 4}, {16, 12}, {28, 1}};
    EXPECT_EQ(symbols.kernels[0].parameters, expected);
    EXPECT_EQ(symbols.kernels[1].name, "none");
    EXPECT_TRUE(symbols.kernels[1].parameters.empty());
    EXPECT_EQ(symbols.globals, (std::vector<std::string>{"scale", "table", "one", "two"}));
}

class CubinBuilder {
  public:
    std::vector<std::byte> build() {
        std::vector<Elf64_Shdr> sections(1);
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        bytes_.resize(sizeof header);
        const std::string strings = std::string("\0kernel\0counter\0.nv.info.kernel\0", 32);
        sections.push_back(add(SHT_STRTAB, strings.data(), strings.size(), 0));
        const Elf64_Sym symbols[] = {{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, 5, 0, 0},
                                     {8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 6, 0, 4}};
        sections.push_back(add(SHT_SYMTAB, symbols, sizeof symbols, 0));
        sections.back().sh_link = 1;
        const std::uint8_t info[] = {3,    0x1b, 8, 0,    4,  0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0,    0,
                                     0x10, 0,    4, 0x17, 12, 0,    0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0};
        sections.push_back(add(SHT_PROGBITS, info, sizeof info, 16));
        header.e_shoff = bytes_.size();
        header.e_shnum = static_cast<std::uint16_t>(sections.size());
        header.e_shstrndx = 1;
        append(sections.data(), sections.size() * sizeof(Elf64_Shdr));
        std::memcpy(bytes_.data(), &header, sizeof header);
        return bytes_;
    }

  private:
    void append(const void* data, std::size_t size) {
        const auto* from = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), from, from + size);
    }
    Elf64_Shdr add(std::uint32_t type, const void* data, std::size_t size, std::uint32_t name) {
        Elf64_Shdr section{};
        section.sh_name = name;
        section.sh_type = type;
        section.sh_offset = bytes_.size();
        section.sh_size = size;
        append(data, size);
        return section;
    }
    std::vector<std::byte> bytes_;
};

TEST(SymbolsElf, FindsKernelsParametersAndGlobals) {
    const ImageSymbols symbols = scan_image(CubinBuilder().build());
    ASSERT_EQ(symbols.kernels.size(), 1u);
    EXPECT_EQ(symbols.kernels[0].name, "kernel");
    const std::vector<wire::ParameterInfo> expected{{0, 8}, {8, 4}};
    EXPECT_EQ(symbols.kernels[0].parameters, expected);
    EXPECT_EQ(symbols.globals, (std::vector<std::string>{"counter"}));
}

std::vector<std::byte> fatbin_of(std::span<const std::byte> elf, std::string_view ptx) {
    std::vector<std::byte> out(16);
    const auto put = [&](std::size_t at, const auto& value) { std::memcpy(out.data() + at, &value, sizeof value); };
    put(0, std::uint32_t{0xba55ed50});
    put(4, std::uint16_t{1});
    put(6, std::uint16_t{16});
    const auto add = [&](std::uint16_t kind, const void* data, std::size_t size) {
        const std::size_t at = out.size();
        out.resize(at + 64 + size);
        put(at, kind);
        put(at + 4, std::uint32_t{64});
        put(at + 8, std::uint64_t{size});
        std::memcpy(out.data() + at + 64, data, size);
    };
    add(2, elf.data(), elf.size());
    add(1, ptx.data(), ptx.size());
    put(8, std::uint64_t{out.size() - 16});
    return out;
}

TEST(SymbolsFatbin, JoinsItsEntries) {
    const ImageSymbols symbols = scan_image(fatbin_of(CubinBuilder().build(), kPtx));
    EXPECT_EQ(symbols.kernels.size(), 3u);
    EXPECT_EQ(symbols.globals.size(), 5u);
}

TEST(Symbols, DamagedImagesAreReadWithinTheirBounds) {
    Random random(7);
    const std::vector<std::byte> good = fatbin_of(CubinBuilder().build(), kPtx);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> bad = good;
        for (int i = 0; i < 4; ++i) bad[random.below(bad.size())] = static_cast<std::byte>(random.next());
        bad.resize(random.below(bad.size()) + 1);
        bad.shrink_to_fit();
        (void)scan_image(bad);
        if (bad.size() > 16 + 64) (void)scan_image(std::span(bad).subspan(80));
    }
}

}  // namespace
}  // namespace weft::executor
