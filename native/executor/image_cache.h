// Module images by their SHA-256, on disk and shared by all executors of a machine: written under another name and
// renamed, verified at every read, bounded in bytes, least recently used first out. A directory that cannot be used
// leaves the memory of this process. Called on the helper thread only. Design note: docs/design/executor.md.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "wire/describe.h"

namespace weft::executor {

// The bytes of an image, followed by one zero byte that is not counted (PTX has to end with one).
class ImageBytes {
  public:
    explicit ImageBytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) { bytes_.push_back(std::byte{0}); }
    std::span<const std::byte> span() const { return {bytes_.data(), bytes_.size() - 1}; }
    const void* data() const { return bytes_.data(); }

  private:
    std::vector<std::byte> bytes_;
};
using ImageRef = std::shared_ptr<const ImageBytes>;

class ImageCache {
  public:
    static constexpr std::uint64_t kMaxImageBytes = 512u << 20;
    // directory: made if it is missing; empty: memory only. max_bytes: of the directory, and of what memory keeps.
    ImageCache(std::string directory, std::uint64_t max_bytes);

    // nullptr: not known (or damaged, and removed).
    ImageRef find(const wire::Hash& hash, std::uint64_t size_bytes);
    // invalid_argument: the bytes do not have that hash. Trouble with the disk is logged, not returned.
    Result<ImageRef> store(const wire::Hash& hash, std::vector<std::byte> bytes);

    bool uses_disk() const { return !directory_.empty(); }

  private:
    struct Kept {
        wire::Hash hash;
        ImageRef image;
    };
    std::string path_of(const wire::Hash& hash) const;
    ImageRef find_in_memory(const wire::Hash& hash);
    ImageRef read_file(const wire::Hash& hash, std::uint64_t size_bytes);
    Status write_file(const wire::Hash& hash, std::span<const std::byte> bytes);
    void keep_in_memory(const wire::Hash& hash, ImageRef image);
    void evict();
    void give_up_disk(const Status& reason);

    std::string directory_;
    std::uint64_t max_bytes_;
    std::uint64_t kept_bytes_ = 0;
    std::list<Kept> kept_;  // most recently used first
};

}  // namespace weft::executor
