// The plain payload of a compressed entry. LZ4 blocks are decoded here; Zstandard needs the system's libzstd.so.1
// (docs/adr/0014-zstandard-from-the-system.md).
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "fatbin/container.h"

namespace weft::fatbin {

// What one entry may grow to. Larger ones are refused before memory is taken.
inline constexpr std::uint64_t kMaxPlainBytes = 256u << 20;

// unsupported: the machine lacks libzstd, or the compression is unknown; the text says what to do. invalid_argument:
// damaged.
Result<std::vector<std::byte>> decompress(const Entry& entry);

// Fills `out` to its end, or fails.
bool decompress_lz4(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace weft::fatbin
