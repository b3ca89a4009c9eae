// Feeds any bytes to everything that reads fat binaries.
#pragma once

#include <cstddef>
#include <span>

namespace weft::fuzz {

void fuzz_fatbin(std::span<const std::byte> image);

}  // namespace weft::fuzz
