#include "shim/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace weft::shim {
namespace {

constexpr std::size_t kMaxImageBytes = 512u << 20;
constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

struct FatbinWrapper {
    std::uint32_t magic, version;
    const void* data;
    const void* file;
};

struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t fat_bytes;
};

Status bad(const char* what) { return Status::error(ErrorCode::invalid_argument, what); }

Result<Image> make(ImageKind kind, const void* data, std::uint64_t size) {
    if (size == 0 || size > kMaxImageBytes) return bad("module image of an impossible size");
    return Image{kind, {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)}};
}

Result<Image> elf_image(const void* data) {
    Elf64_Ehdr header;
    std::memcpy(&header, data, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad("module image is ELF, but not 64-bit");
    std::uint64_t end =
        std::max<std::uint64_t>(sizeof header, header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize);
    end = std::max<std::uint64_t>(end, header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize);
    if (end > kMaxImageBytes) return bad("module image is ELF with impossible headers");
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, static_cast<const char*>(data) + header.e_shoff + std::uint64_t{i} * header.e_shentsize,
                    sizeof section);
        if (section.sh_type != SHT_NOBITS) end = std::max<std::uint64_t>(end, section.sh_offset + section.sh_size);
    }
    return make(ImageKind::elf, data, end);
}

Result<Image> fatbin_image(const void* data) {
    FatbinHeader header;
    std::memcpy(&header, data, sizeof header);
    if (header.magic != kFatbinMagic || header.fat_bytes > kMaxImageBytes)
        return bad("module image is a damaged fat binary");
    return make(ImageKind::fatbin, data, header.header_bytes + header.fat_bytes);
}

bool looks_like_text(const char* text) {
    for (int i = 0; i < 64 && text[i] != '\0'; ++i) {
        const unsigned char c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f') return false;
    }
    return text[0] != '\0';
}

}  // namespace

Result<Image> inspect_image(const void* image) {
    // PTX may be shorter than four bytes: look at single bytes before words.
    const char* bytes = static_cast<const char*>(image);
    if (bytes[0] == '\x7f' && std::strncmp(bytes + 1, "ELF", 3) == 0) return elf_image(image);
    if (!looks_like_text(bytes) || static_cast<unsigned char>(bytes[0]) == 0xb1 ||
        static_cast<unsigned char>(bytes[0]) == 0x50) {
        std::uint32_t magic = 0;
        if (bytes[0] != '\0') std::memcpy(&magic, image, sizeof magic);
        if (magic == kFatbinMagic) return fatbin_image(image);
        if (magic == kFatbinWrapperMagic) {
            FatbinWrapper wrapper;
            std::memcpy(&wrapper, image, sizeof wrapper);
            return wrapper.data != nullptr ? fatbin_image(wrapper.data) : bad("fat binary wrapper without data");
        }
        if (!looks_like_text(bytes)) return bad("module image is neither PTX, ELF nor a fat binary");
    }
    const std::size_t length = strnlen(bytes, kMaxImageBytes + 1);
    return make(ImageKind::ptx, image, length + 1);  // with its NUL, as the driver expects it
}

}  // namespace weft::shim
