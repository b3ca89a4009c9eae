// See symbols.h. Tells the format by its first bytes, as drivers do; fat binaries hold PTX and ELF entries.
#include "executor/symbols.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "fatbin/decompress.h"

namespace weft::executor {

namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;
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

void scan_payload(fatbin::Kind kind, std::span<const std::byte> payload, ImageSymbols* out) {
    if (kind == fatbin::Kind::ptx) scan_ptx({reinterpret_cast<const char*>(payload.data()), payload.size()}, out);
    if (kind == fatbin::Kind::elf) scan_elf(payload, out);
}

void scan_fatbin(std::span<const std::byte> image, ImageSymbols* out) {
    fatbin::Reader reader(image);
    while (const auto entry = reader.next()) {
        if (entry->compression() == fatbin::Compression::none) {
            scan_payload(entry->kind, entry->payload, out);
        } else if (const auto plain = fatbin::decompress(*entry)) {
            scan_payload(entry->kind, *plain, out);
        }
    }
}

namespace {

bool names_printing(std::span<const std::byte> code) {
    const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
    return text.find("vprintf") != text.npos || text.find("__assertfail") != text.npos;
}

}  // namespace

bool may_print(std::span<const std::byte> image) {
    if (names_printing(image)) return true;
    fatbin::Reader reader(image);
    while (const auto entry = reader.next()) {
        if (entry->compression() == fatbin::Compression::none) continue;
        const auto plain = fatbin::decompress(*entry);
        if (!plain || names_printing(*plain)) return true;
    }
    return false;
}

ImageSymbols scan_image(std::span<const std::byte> image) {
    ImageSymbols symbols;
    std::uint32_t magic = 0;
    read(image, 0, &magic);
    if (magic == kElfMagic) {
        scan_elf(image, &symbols);
    } else if (magic == fatbin::kMagic) {
        scan_fatbin(image, &symbols);
    } else {
        scan_ptx({reinterpret_cast<const char*>(image.data()), image.size()}, &symbols);
    }
    remove_duplicates(&symbols);
    return symbols;
}

}  // namespace weft::executor
