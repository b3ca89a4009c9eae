// What kind of module image a pointer leads to, and how long it is: cuModuleLoadData passes no size.
// Formats: PTX text ends with NUL; ELF64 by its headers; fat binaries by the container facts in docs/design/modules.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace weft::shim {

enum class ImageKind : std::uint32_t { ptx = 1, elf = 2, fatbin = 3, linked = 4 };

struct Image {
    ImageKind kind = ImageKind::ptx;
    std::span<const std::byte> bytes;
};

// Reads as far as the format tells. invalid_argument for what is none of the formats or is longer than 512 MiB.
Result<Image> inspect_image(const void* image);

}  // namespace weft::shim
