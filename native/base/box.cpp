#include "base/box.h"

namespace weft {
namespace {

bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t* product) {
    return !__builtin_mul_overflow(a, b, product);
}

template <typename Row>
void for_each_row(const Pitches& pitches, const Box& box, std::uint64_t offset, std::uint64_t size, Row&& row) {
    for (const BoxPart& part : parts_of(box, offset, size)) {
        std::uint64_t packed = part.packed_offset - offset;
        for (std::uint64_t z = 0; z < part.size.depth; ++z) {
            for (std::uint64_t y = 0; y < part.size.height; ++y, packed += part.size.width)
                row((part.z + z) * pitches.plane + (part.y + y) * pitches.row + part.x, packed, part.size.width);
        }
    }
}

}  // namespace

std::optional<std::uint64_t> Box::bytes() const {
    std::uint64_t rows = 0, all = 0;
    if (!multiply(height, depth, &rows) || !multiply(rows, width, &all)) return std::nullopt;
    return all;
}

std::optional<std::uint64_t> Pitches::span(const Box& box) const {
    std::uint64_t planes = 0, rows = 0, sum = 0;
    if (!multiply(plane, box.depth - 1, &planes) || !multiply(row, box.height - 1, &rows)) return std::nullopt;
    if (__builtin_add_overflow(planes, rows, &sum) || __builtin_add_overflow(sum, box.width, &sum)) return std::nullopt;
    return sum;
}

BoxParts parts_of(const Box& box, std::uint64_t offset, std::uint64_t size) {
    BoxParts found;
    const std::uint64_t end = offset + size;
    while (offset < end && found.count < found.parts.size()) {
        const std::uint64_t x = offset % box.width, row = offset / box.width;
        BoxPart part{x, row % box.height, row / box.height, {}, offset};
        const std::uint64_t rows = (end - offset) / box.width;
        if (x != 0 || rows == 0) {
            part.size = {std::min(box.width - x, end - offset), 1, 1};
        } else if (part.y != 0 || rows < box.height) {
            part.size = {box.width, std::min(rows, box.height - part.y), 1};
        } else {
            part.size = {box.width, box.height, rows / box.height};
        }
        offset += part.size.width * part.size.height * part.size.depth;
        found.parts[found.count++] = part;
    }
    return found;
}

std::uint64_t next_piece(const Box& box, std::uint64_t offset, std::uint64_t limit) {
    const std::uint64_t plane = box.width * box.height, all = plane * box.depth;
    const std::uint64_t left = all - offset, most = std::min(left, limit);
    const auto to_border = [&](std::uint64_t unit) {
        const std::uint64_t into = offset % unit;
        return into == 0 ? most / unit * unit : std::min(most, unit - into);
    };
    if (offset % plane == 0 && most >= plane) return to_border(plane);
    if (offset % box.width == 0 && most >= box.width) return std::min(to_border(box.width), plane - offset % plane);
    return std::min(most, box.width - offset % box.width);
}

void pack(std::byte* packed, const std::byte* base, const Pitches& pitches, const Box& box, std::uint64_t offset,
          std::uint64_t size) {
    for_each_row(pitches, box, offset, size, [&](std::uint64_t at, std::uint64_t from, std::uint64_t bytes) {
        std::memcpy(packed + from, base + at, bytes);
    });
}

void unpack(std::byte* base, const Pitches& pitches, const Box& box, std::uint64_t offset, const std::byte* packed,
            std::uint64_t size) {
    for_each_row(pitches, box, offset, size, [&](std::uint64_t at, std::uint64_t from, std::uint64_t bytes) {
        std::memcpy(base + at, packed + from, bytes);
    });
}

}  // namespace weft
