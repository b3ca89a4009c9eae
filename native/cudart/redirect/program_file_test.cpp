#include "cudart/redirect/program_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace weft::redirect {
namespace {

struct Symbol {
    std::string name;
    std::uint64_t address, size;
    bool defined = true;
};

// A file of section headers, one symbol table and their texts.
class Builder {
  public:
    std::string build(bool device_code, bool stripped, const std::vector<Symbol>& symbols,
                      const std::vector<Symbol>& imports) {
        bytes_.assign(sizeof(Elf64_Ehdr), '\0');
        sections_ = {{}};
        names_ = std::string(1, '\0');
        if (device_code) add(".nvFatBinSegment", SHT_PROGBITS, "", 0);
        if (!stripped) add_symbols(".symtab", SHT_SYMTAB, symbols);
        add_symbols(".dynsym", SHT_DYNSYM, imports);
        add(".shstrtab", SHT_STRTAB, "", 0);
        sections_.back().sh_offset = bytes_.size();
        sections_.back().sh_size = names_.size();
        bytes_ += names_;
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_shoff = bytes_.size();
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = static_cast<Elf64_Half>(sections_.size());
        header.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
        std::memcpy(bytes_.data(), &header, sizeof header);
        bytes_.append(reinterpret_cast<const char*>(sections_.data()), sections_.size() * sizeof(Elf64_Shdr));
        return bytes_;
    }

  private:
    void add(const std::string& name, unsigned type, const std::string& content, unsigned link) {
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        Elf64_Shdr section{};
        section.sh_name = static_cast<Elf64_Word>(names_.size());
        section.sh_type = type;
        section.sh_offset = bytes_.size();
        section.sh_size = content.size();
        section.sh_link = link;
        section.sh_entsize = type == SHT_SYMTAB || type == SHT_DYNSYM ? sizeof(Elf64_Sym) : 0;
        sections_.push_back(section);
        names_ += name + '\0';
        bytes_ += content;
    }
    void add_symbols(const std::string& name, unsigned type, const std::vector<Symbol>& symbols) {
        std::string texts(1, '\0');
        std::vector<Elf64_Sym> entries;
        for (const Symbol& symbol : symbols) {
            Elf64_Sym entry{};
            entry.st_name = static_cast<Elf64_Word>(texts.size());
            entry.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
            entry.st_shndx = symbol.defined ? 1 : SHN_UNDEF;
            entry.st_value = symbol.address;
            entry.st_size = symbol.size;
            texts += symbol.name + '\0';
            entries.push_back(entry);
        }
        add(name + ".names", SHT_STRTAB, texts, 0);
        const auto link = static_cast<unsigned>(sections_.size() - 1);
        add(name, type, {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Elf64_Sym)}, link);
    }

    std::string bytes_, names_;
    std::vector<Elf64_Shdr> sections_;
};

const std::vector<Symbol> kRuntime = {{"main", 0x1000, 100},
                                      {"cudaMalloc", 0x2000, 200},
                                      {"__cudaLaunchKernel", 0x2100, 10},
                                      {"__cudaGetProcAddress", 0x2110, 3},
                                      {"cudaFree", 0x2118, 40},
                                      {"cudaNotThere", 0, 0, false}};

std::vector<std::string> runtime_names(const ProgramFile& program) {
    std::vector<std::string> names;
    program.for_each_runtime_name([&](const ProgramFile::Function& function) { names.emplace_back(function.name); });
    return names;
}

TEST(ProgramFile, FindsTheRuntimeInside) {
    const std::string file = Builder().build(true, false, kRuntime, {});
    const ProgramFile program(file.data(), file.size());
    EXPECT_TRUE(program.has_device_code());
    EXPECT_TRUE(program.has_symbols());
    EXPECT_FALSE(program.imports_runtime());
    EXPECT_EQ((std::vector<std::string>{"cudaMalloc", "__cudaLaunchKernel", "__cudaGetProcAddress", "cudaFree"}),
              runtime_names(program));
}

TEST(ProgramFile, RoomEndsAtTheNextFunctionOrTheNextSlot) {
    const std::string file = Builder().build(true, false, kRuntime, {});
    const ProgramFile program(file.data(), file.size());
    EXPECT_EQ(16u, program.room_at({"__cudaLaunchKernel", 0x2100, 10}));
    EXPECT_EQ(8u, program.room_at({"__cudaGetProcAddress", 0x2110, 3}));
}

TEST(ProgramFile, TellsASharedRuntimeByItsImports) {
    const std::string file = Builder().build(true, true, {}, {{"__cudaRegisterFatBinary", 0, 0, false}});
    const ProgramFile program(file.data(), file.size());
    EXPECT_TRUE(program.imports_runtime());
    EXPECT_FALSE(program.has_symbols());
}

TEST(ProgramFile, ProgramsWithoutDeviceCodeAreLeftAlone) {
    const std::string file = Builder().build(false, false, {{"main", 0x1000, 1}}, {});
    EXPECT_FALSE(ProgramFile(file.data(), file.size()).has_device_code());
    EXPECT_FALSE(ProgramFile("#!/bin/sh", 9).has_device_code());
}

TEST(ProgramFile, DamageIsNeverFollowed) {
    const std::string file = Builder().build(true, false, kRuntime, {{"__cudaRegisterFatBinary", 0, 0, false}});
    for (std::size_t size = 0; size < file.size(); size += 3) {
        const std::string cut = file.substr(0, size);
        const ProgramFile program(cut.data(), cut.size());
        (void)runtime_names(program);
        (void)program.imports_runtime();
    }
    for (std::size_t at = 0; at < file.size(); ++at) {
        std::string changed = file;
        changed[at] = '\xff';
        const ProgramFile program(changed.data(), changed.size());
        (void)runtime_names(program);
        (void)program.imports_runtime();
    }
}

}  // namespace
}  // namespace weft::redirect
