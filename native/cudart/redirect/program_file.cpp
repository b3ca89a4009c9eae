#include "cudart/redirect/program_file.h"

#include <algorithm>
#include <cstring>

namespace weft::redirect {
namespace {

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

bool is_runtime_name(const char* name) { return starts_with(name, "cuda") || starts_with(name, "__cuda"); }

bool is_ours(const Elf64_Ehdr& header) {
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shstrndx < header.e_shnum && header.e_shoff % 8 == 0;
}

}  // namespace

ProgramFile::ProgramFile(const void* data, std::size_t size) : data_(static_cast<const char*>(data)), size_(size) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes_at(0, sizeof(Elf64_Ehdr)));
    if (header == nullptr || !is_ours(*header)) return;
    sections_ = reinterpret_cast<const Elf64_Shdr*>(
        bytes_at(header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr)));
    if (sections_ == nullptr) return;
    section_count_ = header->e_shnum;
    for (std::size_t i = 0; i < section_count_; ++i) take_section(sections_[i], sections_[header->e_shstrndx]);
}

const char* ProgramFile::bytes_at(std::uint64_t offset, std::uint64_t size) const {
    return offset <= size_ && size <= size_ - offset ? data_ + offset : nullptr;
}

// Null unless the text ends inside the table.
const char* ProgramFile::text_at(const Elf64_Shdr& table, std::uint32_t offset) const {
    if (offset >= table.sh_size) return nullptr;
    const char* text = bytes_at(table.sh_offset + offset, table.sh_size - offset);
    return text != nullptr && std::memchr(text, '\0', table.sh_size - offset) != nullptr ? text : nullptr;
}

void ProgramFile::take_section(const Elf64_Shdr& section, const Elf64_Shdr& names) {
    const char* name = text_at(names, section.sh_name);
    if (name != nullptr && std::strcmp(name, ".nvFatBinSegment") == 0) device_code_ = true;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) return;
    if (section.sh_link >= section_count_ || section.sh_entsize != sizeof(Elf64_Sym) || section.sh_offset % 8 != 0)
        return;
    const auto* entries = reinterpret_cast<const Elf64_Sym*>(bytes_at(section.sh_offset, section.sh_size));
    if (entries == nullptr) return;
    const std::size_t count = section.sh_size / sizeof(Elf64_Sym);
    if (section.sh_type == SHT_SYMTAB) {
        symbols_ = entries;
        symbol_count_ = count;
        symbol_names_ = &sections_[section.sh_link];
    } else {
        dynamic_symbols_ = entries;
        dynamic_count_ = count;
        dynamic_names_ = &sections_[section.sh_link];
    }
}

bool ProgramFile::imports_runtime() const {
    for (std::size_t i = 0; i < dynamic_count_; ++i) {
        const char* name = text_at(*dynamic_names_, dynamic_symbols_[i].st_name);
        if (dynamic_symbols_[i].st_shndx == SHN_UNDEF && name != nullptr &&
            starts_with(name, "__cudaRegisterFatBinary"))
            return true;
    }
    return false;
}

bool ProgramFile::read_function(std::size_t index, Function* out) const {
    const Elf64_Sym& symbol = symbols_[index];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
    const char* name = text_at(*symbol_names_, symbol.st_name);
    if (name == nullptr || !is_runtime_name(name)) return false;
    *out = {name, symbol.st_value, symbol.st_size};
    return true;
}

std::uint64_t ProgramFile::room_at(const Function& function) const {
    constexpr std::uint64_t kAlignment = 16;
    const std::uint64_t end = function.address + function.size;
    std::uint64_t next = (end + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t i = 0; i < symbol_count_; ++i)
        if (symbols_[i].st_value > function.address && symbols_[i].st_shndx != SHN_UNDEF)
            next = std::min(next, symbols_[i].st_value);
    return next - function.address;
}

}  // namespace weft::redirect
