// Names in a device ELF (cubin): kernels are functions marked as entries, globals are objects; parameters are listed in
// .nv.info.<kernel> (public layout: attribute EIATTR_KPARAM_INFO as printed by cuobjdump). See symbols.h.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "executor/symbols.h"

namespace weft::executor {

namespace {

constexpr std::uint8_t kEntryMark = 0x10;  // of st_other
constexpr std::uint8_t kFormatSized = 4;   // an attribute with a 16-bit length and that many bytes
constexpr std::uint8_t kParameterInfo = 0x17;

class Elf {
  public:
    explicit Elf(std::span<const std::byte> image) : image_(image) {
        if (!read(0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
            header_.e_ident[EI_CLASS] != ELFCLASS64)
            return;
        for (unsigned i = 0; i < header_.e_shnum; ++i) {
            Elf64_Shdr section;
            if (!read(header_.e_shoff + std::uint64_t{i} * sizeof(section), &section)) return;
            sections_.push_back(section);
        }
    }
    const std::vector<Elf64_Shdr>& sections() const { return sections_; }
    std::span<const std::byte> bytes(const Elf64_Shdr& section) const {
        if (section.sh_type == SHT_NOBITS || section.sh_offset > image_.size()) return {};
        return image_.subspan(section.sh_offset,
                              std::min<std::uint64_t>(section.sh_size, image_.size() - section.sh_offset));
    }
    std::string_view text(std::uint32_t string_section, std::uint64_t offset) const {
        if (string_section >= sections_.size()) return {};
        const auto table = bytes(sections_[string_section]);
        if (offset >= table.size()) return {};
        const char* start = reinterpret_cast<const char*>(table.data()) + offset;
        const std::size_t length = strnlen(start, table.size() - offset);
        return length > wire::kMaxNameBytes ? std::string_view{} : std::string_view{start, length};
    }
    std::string_view name(const Elf64_Shdr& section) const { return text(header_.e_shstrndx, section.sh_name); }

  private:
    template <typename T>
    bool read(std::uint64_t offset, T* out) const {
        if (offset > image_.size() || image_.size() - offset < sizeof(T)) return false;
        std::memcpy(out, image_.data() + offset, sizeof(T));
        return true;
    }
    std::span<const std::byte> image_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
};

struct ParameterRecord {
    std::uint32_t index;
    std::uint16_t ordinal, offset;
    std::uint32_t properties;  // bits 18..31: size in bytes
};

std::vector<wire::ParameterInfo> read_parameters(std::span<const std::byte> info) {
    std::vector<wire::ParameterInfo> parameters;
    std::size_t at = 0;
    while (at + 4 <= info.size()) {
        const auto format = static_cast<std::uint8_t>(info[at]);
        const auto attribute = static_cast<std::uint8_t>(info[at + 1]);
        std::uint16_t size = 0;
        std::memcpy(&size, info.data() + at + 2, sizeof size);
        at += 4;
        if (format != kFormatSized) continue;
        if (size > info.size() - at) break;
        if (attribute == kParameterInfo && size >= sizeof(ParameterRecord)) {
            ParameterRecord record;
            std::memcpy(&record, info.data() + at, sizeof record);
            if (record.ordinal >= wire::kMaxParameters) break;
            if (parameters.size() <= record.ordinal) parameters.resize(record.ordinal + 1u);
            parameters[record.ordinal] = {record.offset, record.properties >> 18};
        }
        at += size;
    }
    return parameters;
}

void read_symbols(const Elf& elf, const Elf64_Shdr& table, ImageSymbols* out) {
    const auto bytes = elf.bytes(table);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
        const std::string_view name = elf.text(table.sh_link, symbol.st_name);
        if (name.empty() || symbol.st_shndx == SHN_UNDEF) continue;
        const auto type = ELF64_ST_TYPE(symbol.st_info);
        if (type == STT_FUNC && (symbol.st_other & kEntryMark) != 0 && out->kernels.size() < wire::kMaxFunctions) {
            out->kernels.push_back({std::string(name), {}});
        }
        if (type == STT_OBJECT && out->globals.size() < wire::kMaxGlobals) out->globals.emplace_back(name);
    }
}

}  // namespace

void scan_elf(std::span<const std::byte> image, ImageSymbols* out) {
    const Elf elf(image);
    const std::size_t first = out->kernels.size();
    for (const Elf64_Shdr& section : elf.sections()) {
        if (section.sh_type == SHT_SYMTAB) read_symbols(elf, section, out);
    }
    constexpr std::string_view kPrefix = ".nv.info.";
    for (const Elf64_Shdr& section : elf.sections()) {
        const std::string_view name = elf.name(section);
        if (!name.starts_with(kPrefix)) continue;
        for (std::size_t i = first; i < out->kernels.size(); ++i) {
            if (out->kernels[i].name == name.substr(kPrefix.size()))
                out->kernels[i].parameters = read_parameters(elf.bytes(section));
        }
    }
}

}  // namespace weft::executor
