// Reads and writes little-endian values in byte strings. A reader never reads past its end: after the first failure it
// answers zeros and stays failed, so that a decoder may check once, at its end. Design note: docs/design/wire.md.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and read in place");

class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

    bool is_ok() const { return ok_; }
    std::size_t left() const { return rest_.size(); }

    template <typename T>
    T value() {
        static_assert(std::is_trivially_copyable_v<T>);
        T out{};
        if (const auto bytes = take(sizeof(T)); !bytes.empty()) std::memcpy(&out, bytes.data(), sizeof(T));
        return out;
    }
    std::uint32_t u32() { return value<std::uint32_t>(); }
    std::uint64_t u64() { return value<std::uint64_t>(); }
    std::int32_t i32() { return value<std::int32_t>(); }

    // The next size bytes, in place; empty if there are fewer.
    std::span<const std::byte> take(std::size_t size) {
        if (size > rest_.size()) {
            fail();
            return {};
        }
        const auto out = rest_.first(size);
        rest_ = rest_.subspan(size);
        return out;
    }
    // A count of elements that take at least element_bytes each; fails if it is above the limit or above what can
    // follow.
    std::size_t count(std::size_t limit, std::size_t element_bytes) {
        const std::size_t n = u32();
        if (n <= limit && n <= rest_.size() / element_bytes) return n;
        fail();
        return 0;
    }
    // A text with its length before it.
    std::string text(std::size_t limit) {
        const auto bytes = take(count(limit, 1));
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void fail() {
        ok_ = false;
        rest_ = {};
    }

  private:
    std::span<const std::byte> rest_;
    bool ok_ = true;
};

class ByteWriter {
  public:
    template <typename T>
    void value(const T& in) {
        static_assert(std::is_trivially_copyable_v<T>);
        raw(std::as_bytes(std::span<const T, 1>(&in, 1)));
    }
    void u32(std::uint64_t in) { value(static_cast<std::uint32_t>(in)); }
    void u64(std::uint64_t in) { value(in); }
    void i32(std::int32_t in) { value(in); }
    void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    // The text with its length before it, cut at the limit.
    void text(std::string_view in, std::size_t limit) {
        in = in.substr(0, limit);
        u32(in.size());
        raw(std::as_bytes(std::span(in.data(), in.size())));
    }

    const std::vector<std::byte>& bytes() const { return bytes_; }
    std::vector<std::byte> release() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

}  // namespace weft
