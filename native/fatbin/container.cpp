#include "fatbin/container.h"

#include <cstring>

namespace weft::fatbin {
namespace {

struct EntryHeader {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t payload_bytes;  // padded
    std::uint32_t compressed_bytes, options_offset;
    std::uint16_t minor, major;
    std::uint32_t sm, name_offset, name_bytes;
    std::uint64_t flags, reserved, plain_bytes;
};
static_assert(sizeof(EntryHeader) == 64);
// Old compilers wrote no sizes behind the flags.
constexpr std::size_t kShortHeaderBytes = offsetof(EntryHeader, reserved);

}  // namespace

Compression Entry::compression() const {
    if ((flags & kFlagZstd) != 0) return Compression::zstd;
    if ((flags & kFlagLz4) != 0) return Compression::lz4;
    return plain_bytes != 0 ? Compression::unknown : Compression::none;
}

Reader::Reader(std::span<const std::byte> image) {
    Header header;
    damaged_ = image.size() < sizeof header;
    if (damaged_) return;
    std::memcpy(&header, image.data(), sizeof header);
    damaged_ = header.magic != kMagic || header.header_bytes < sizeof header || header.header_bytes > image.size() ||
               header.entries_bytes > image.size() - header.header_bytes;
    if (!damaged_) rest_ = image.subspan(header.header_bytes, header.entries_bytes);
}

std::optional<Entry> Reader::next() {
    if (rest_.size() < kShortHeaderBytes) return std::nullopt;
    EntryHeader header{};
    std::memcpy(&header, rest_.data(), kShortHeaderBytes);
    damaged_ = header.header_bytes < kShortHeaderBytes || header.header_bytes > rest_.size() ||
               header.payload_bytes > rest_.size() - header.header_bytes ||
               header.compressed_bytes > header.payload_bytes;
    if (damaged_) {
        rest_ = {};
        return std::nullopt;
    }
    if (header.header_bytes >= sizeof header) std::memcpy(&header, rest_.data(), sizeof header);
    Entry entry;
    entry.kind = static_cast<Kind>(header.kind);
    entry.sm = header.sm;
    entry.flags = header.flags;
    entry.plain_bytes = header.compressed_bytes != 0 ? header.plain_bytes : 0;
    const std::uint64_t stored = header.compressed_bytes != 0 ? header.compressed_bytes : header.payload_bytes;
    entry.payload = rest_.subspan(header.header_bytes, stored);
    rest_ = rest_.subspan(header.header_bytes + header.payload_bytes);
    return entry;
}

}  // namespace weft::fatbin
