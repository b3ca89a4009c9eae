// Boxes of bytes: depth planes of height rows of width bytes, as 2D and 3D copies move them. A box travels packed, row
// after row without padding; what is cut out of that stream of bytes is again a few boxes. Pure arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace weft {

struct Box {
    std::uint64_t width = 0;  // bytes
    std::uint64_t height = 1;
    std::uint64_t depth = 1;

    bool is_empty() const { return width == 0 || height == 0 || depth == 0; }
    // nullopt: more than 64 bits can say.
    std::optional<std::uint64_t> bytes() const;
};

// How the rows of a box lie in memory.
struct Pitches {
    std::uint64_t row = 0;    // from one row to the next
    std::uint64_t plane = 0;  // from one plane to the next

    bool is_packed(const Box& box) const {
        return (box.height <= 1 || row == box.width) && (box.depth <= 1 || plane == box.width * box.height);
    }
    // From the first byte of the box to behind its last; nullopt: more than 64 bits can say. The box is not empty.
    std::optional<std::uint64_t> span(const Box& box) const;
};

// A part of a box, and where its first byte lies in the packed stream.
struct BoxPart {
    std::uint64_t x = 0, y = 0, z = 0;
    Box size;
    std::uint64_t packed_offset = 0;
};

// At most five: the rest of a row, rows up to the end of a plane, planes, rows, the beginning of a row.
struct BoxParts {
    std::array<BoxPart, 5> parts;
    std::size_t count = 0;
    const BoxPart* begin() const { return parts.data(); }
    const BoxPart* end() const { return parts.data() + count; }
};

// The bytes [offset, offset + size) of the packed box as boxes. They lie in the box, which is not empty.
BoxParts parts_of(const Box& box, std::uint64_t offset, std::uint64_t size);
// At most limit bytes from offset on, cut where it makes one part if possible; 0 at the end of the box.
std::uint64_t next_piece(const Box& box, std::uint64_t offset, std::uint64_t limit);

// Between a box in memory and packed bytes [offset, offset + size) of it.
void pack(std::byte* packed, const std::byte* base, const Pitches& pitches, const Box& box, std::uint64_t offset,
          std::uint64_t size);
void unpack(std::byte* base, const Pitches& pitches, const Box& box, std::uint64_t offset, const std::byte* packed,
            std::uint64_t size);

}  // namespace weft
