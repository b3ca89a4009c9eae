// The cache of module images: verified, bounded, shared, and usable without a disk.
#include "executor/image_cache.h"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/sha256.h"

namespace weft::executor {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> image_of(std::size_t size, int seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
    return bytes;
}

class ImageCacheTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "weft-cache-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        set_log_level(LogLevel::error);
    }
    void TearDown() override { fs::remove_all(directory_); }
    std::string path() const { return directory_ / "images"; }
    std::size_t file_count() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(path()), {}));
    }

    fs::path directory_;
};

TEST_F(ImageCacheTest, StoredImageIsFoundByALaterProcess) {
    const auto bytes = image_of(1000, 1);
    const wire::Hash hash = sha256(bytes);
    {
        ImageCache cache(path(), 1 << 20);
        EXPECT_EQ(cache.find(hash, bytes.size()), nullptr);
        ASSERT_TRUE(cache.store(hash, bytes));
    }
    ImageCache later(path(), 1 << 20);
    const ImageRef found = later.find(hash, bytes.size());
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), found->span().begin(), found->span().end()));
    EXPECT_EQ(static_cast<const char*>(found->data())[bytes.size()], '\0');
    EXPECT_EQ(later.find(hash, bytes.size() + 1), nullptr) << "another size is another image";
}

TEST_F(ImageCacheTest, ImageUnderAWrongHashIsRefused) {
    ImageCache cache(path(), 1 << 20);
    const auto stored = cache.store(sha256(image_of(10, 1)), image_of(10, 2));
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.status().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(file_count(), 0u);
}

TEST_F(ImageCacheTest, DamagedFileIsRemovedAndNotUsed) {
    const auto bytes = image_of(1000, 1);
    const wire::Hash hash = sha256(bytes);
    ImageCache cache(path(), 1 << 20);
    ASSERT_TRUE(cache.store(hash, bytes));
    std::fstream file(path() + "/" + to_hex(hash), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put('\xff');
    file.close();
    EXPECT_EQ(cache.find(hash, bytes.size()), nullptr);
    EXPECT_EQ(file_count(), 0u);
}

TEST_F(ImageCacheTest, LeastRecentlyUsedImageIsEvicted) {
    ImageCache cache(path(), 2500);
    std::vector<wire::Hash> hashes;
    for (int i = 0; i < 3; ++i) {
        const auto bytes = image_of(1000, i);
        hashes.push_back(sha256(bytes));
        if (i == 2) {
            // Ages, without sleeping: the first is used again after the second.
            const timespec old[2] = {{1000, 0}, {1000, 0}};
            ::utimensat(AT_FDCWD, (path() + "/" + to_hex(hashes[1])).c_str(), old, 0);
            ASSERT_NE(cache.find(hashes[0], 1000), nullptr);
        }
        ASSERT_TRUE(cache.store(hashes.back(), bytes));
    }
    EXPECT_EQ(file_count(), 2u);
    EXPECT_EQ(cache.find(hashes[1], 1000), nullptr);
    EXPECT_NE(cache.find(hashes[0], 1000), nullptr);
    EXPECT_NE(cache.find(hashes[2], 1000), nullptr);
}

TEST_F(ImageCacheTest, WithoutADirectoryImagesStayInMemory) {
    std::ofstream(path()).put('x');  // a file where the directory should be
    ImageCache cache(path(), 2500);
    EXPECT_FALSE(cache.uses_disk());
    std::vector<wire::Hash> hashes;
    for (int i = 0; i < 3; ++i) {
        const auto bytes = image_of(1000, i);
        hashes.push_back(sha256(bytes));
        ASSERT_TRUE(cache.store(hashes.back(), bytes));
    }
    EXPECT_EQ(cache.find(hashes[0], 1000), nullptr) << "memory is bounded, too";
    EXPECT_NE(cache.find(hashes[2], 1000), nullptr);
}

}  // namespace
}  // namespace weft::executor
