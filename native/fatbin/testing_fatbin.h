// Builds fat binaries for tests.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "fatbin/container.h"

namespace weft::fatbin {

struct TestEntry {
    std::uint16_t kind = 1;
    std::uint32_t sm = 75;
    std::uint64_t flags = 0;
    std::string payload;
    std::uint64_t plain_bytes = 0;  // not 0: the payload is compressed
};

inline std::string build_entry(const TestEntry& entry) {
    std::string header(64, '\0');
    const auto put = [&](std::size_t at, auto value) { std::memcpy(header.data() + at, &value, sizeof value); };
    const std::string padding((8 - entry.payload.size() % 8) % 8, '\0');
    put(0, entry.kind);
    put(4, std::uint32_t{64});
    put(8, std::uint64_t{entry.payload.size() + padding.size()});
    if (entry.plain_bytes != 0) put(16, static_cast<std::uint32_t>(entry.payload.size()));
    put(28, entry.sm);
    put(40, entry.flags);
    put(56, entry.plain_bytes);
    return header + entry.payload + padding;
}

inline std::string build_fatbin(const std::vector<TestEntry>& entries) {
    std::string body;
    for (const TestEntry& entry : entries) body += build_entry(entry);
    std::string header(16, '\0');
    const Header fields{kMagic, 1, 16, body.size()};
    std::memcpy(header.data(), &fields, sizeof fields);
    return header + body;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace weft::fatbin
