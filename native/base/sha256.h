// SHA-256 (FIPS 180-4), streaming. Uses the processor's SHA instructions where they exist, chosen at run time.
// It must not be used on memory that another process may change meanwhile: copy first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft {

using Sha256Digest = std::array<std::uint8_t, 32>;

class Sha256 {
  public:
    Sha256();
    void update(std::span<const std::byte> data);
    // Ends the message; the object must not be used afterwards.
    Sha256Digest finish();

  private:
    std::array<std::uint32_t, 8> state_;
    std::array<std::uint8_t, 64> block_;
    std::size_t block_used_ = 0;
    std::uint64_t total_bytes_ = 0;
};

Sha256Digest sha256(std::span<const std::byte> data);
std::string to_hex(const Sha256Digest& digest);

namespace sha256_detail {
using Compress = void (*)(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count);
void compress_portable(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count);
// The fastest one of this machine; the portable one where there is no other.
Compress best_compress();
}  // namespace sha256_detail

}  // namespace weft
