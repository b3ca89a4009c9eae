// Fat binaries: a container of code for several devices, each entry plain or compressed. Facts: docs/design/modules.md.
// Input may be damaged or hostile: every size is checked before use. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::fatbin {

inline constexpr std::uint32_t kMagic = 0xba55ed50;
inline constexpr std::uint32_t kWrapperMagic = 0x466243b1;
inline constexpr std::uint64_t kFlagLz4 = 1u << 13;
inline constexpr std::uint64_t kFlagZstd = 1u << 15;

struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t entries_bytes;
};

enum class Kind : std::uint16_t { ptx = 1, elf = 2 };
enum class Compression { none, lz4, zstd, unknown };

struct Entry {
    Kind kind{};
    std::uint32_t sm = 0;  // 10 * major + minor
    std::uint64_t flags = 0;
    std::uint64_t plain_bytes = 0;  // of a compressed entry, as it says itself
    std::span<const std::byte> payload;

    Compression compression() const;
};

// Goes through the entries in their order and stops at the first damaged one.
class Reader {
  public:
    // The image with its header; bytes behind the container are ignored.
    explicit Reader(std::span<const std::byte> image);
    bool is_damaged() const { return damaged_; }
    std::optional<Entry> next();

  private:
    std::span<const std::byte> rest_;
    bool damaged_ = false;
};

}  // namespace weft::fatbin
