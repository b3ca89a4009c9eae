// Owns one range of mapped memory. It must not close or own the descriptor behind it: a mapping lives without.
// Design: docs/design/transport.md.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace weft {

class Mapping {
  public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    // [offset, offset + size_bytes) of the file, shared, readable and writable; pages come when they are touched.
    static Result<Mapping> shared(int fd, std::size_t offset, std::size_t size_bytes);
    // The same range twice, one behind the other: bytes that wrap around are contiguous. Both are multiples of the page
    // size.
    static Result<Mapping> ring(int fd, std::size_t offset, std::size_t size_bytes);
    // Zeroed private memory; pages come when they are touched.
    static Result<Mapping> anonymous(std::size_t size_bytes);

    std::byte* data() const { return data_; }
    // Length of the whole range: twice the ring's size for ring().
    std::size_t mapped_bytes() const { return mapped_bytes_; }
    std::span<std::byte> span() const { return {data_, mapped_bytes_}; }
    explicit operator bool() const { return data_ != nullptr; }

  private:
    Mapping(void* data, std::size_t mapped_bytes) : data_(static_cast<std::byte*>(data)), mapped_bytes_(mapped_bytes) {}
    void unmap();

    std::byte* data_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

// A memory file of this size without a name in any file system, closed on exec.
Result<UniqueFd> make_memory_file(const char* label, std::size_t size_bytes, bool allow_sealing);

}  // namespace weft
