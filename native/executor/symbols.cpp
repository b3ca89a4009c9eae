// See symbols.h. Tells the format by its first bytes, as drivers do; fat binaries hold PTX and ELF entries.
#include "executor/symbols.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace weft::executor {

namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint64_t kFatbinCompressed = 0x2000 | 0x8000;  // entry flags: LZ4 or Zstandard

struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t entries_bytes;
};

struct FatbinEntry {
    std::uint16_t kind, version;  // kind: 1 PTX, 2 ELF
    std::uint32_t header_bytes;
    std::uint64_t payload_bytes;
    std::uint32_t stored_bytes, reserved;
    std::uint16_t minor, major;
    std::uint32_t architecture, name_offset, name_bytes;
    std::uint64_t flags;
};
static_assert(sizeof(FatbinEntry) == 48);

template <typename T>
bool read(std::span<const std::byte> bytes, std::uint64_t offset, T* out) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes.data() + offset, sizeof(T));
    return true;
}

// Several entries of a fat binary name the same symbols.
void remove_duplicates(ImageSymbols* symbols) {
    std::unordered_set<std::string> seen;
    std::erase_if(symbols->globals, [&](const std::string& name) { return !seen.insert(name).second; });
    seen.clear();
    std::erase_if(symbols->kernels, [&](const KernelSymbol& kernel) { return !seen.insert(kernel.name).second; });
    if (symbols->globals.size() > wire::kMaxGlobals) symbols->globals.resize(wire::kMaxGlobals);
    if (symbols->kernels.size() > wire::kMaxFunctions) symbols->kernels.resize(wire::kMaxFunctions);
}

}  // namespace

void scan_fatbin(std::span<const std::byte> image, ImageSymbols* out) {
    FatbinHeader header;
    if (!read(image, 0, &header) || header.magic != kFatbinMagic) return;
    std::uint64_t offset = header.header_bytes;
    FatbinEntry entry;
    while (read(image, offset, &entry) && entry.header_bytes >= sizeof(entry)) {
        const std::uint64_t start = offset + entry.header_bytes;
        if (start > image.size() || entry.payload_bytes > image.size() - start) return;
        const auto payload = image.subspan(start, entry.payload_bytes);
        if ((entry.flags & kFatbinCompressed) == 0) {
            if (entry.kind == 1) scan_ptx({reinterpret_cast<const char*>(payload.data()), payload.size()}, out);
            if (entry.kind == 2) scan_elf(payload, out);
        }
        offset = start + entry.payload_bytes;
    }
}

ImageSymbols scan_image(std::span<const std::byte> image) {
    ImageSymbols symbols;
    std::uint32_t magic = 0;
    read(image, 0, &magic);
    if (magic == kElfMagic) {
        scan_elf(image, &symbols);
    } else if (magic == kFatbinMagic) {
        scan_fatbin(image, &symbols);
    } else {
        scan_ptx({reinterpret_cast<const char*>(image.data()), image.size()}, &symbols);
    }
    remove_duplicates(&symbols);
    return symbols;
}

}  // namespace weft::executor
