// See image_cache.h. Several processes use the directory at once: a file that another one removes meanwhile is merely
// not found.
#include "executor/image_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"

namespace weft::executor {

namespace {

constexpr std::size_t kNameBytes = 64;
constexpr std::uint64_t kMaxKeptBytes = 256u << 20;  // in memory
constexpr std::time_t kStaleTemporary_s = 3600;
constexpr std::string_view kTemporaryPrefix = ".new-";

bool is_image_name(std::string_view name) {
    return name.size() == kNameBytes && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status make_directories(const std::string& path) {
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
        const std::string part = path.substr(0, at);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return Status::from_errno("mkdir", errno);
        if (at == std::string::npos) return Status::ok();
    }
}

bool read_all(int fd, std::span<std::byte> into) {
    while (!into.empty()) {
        const ssize_t got = ::read(fd, into.data(), into.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        into = into.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

Status write_all(int fd, std::span<const std::byte> from) {
    while (!from.empty()) {
        const ssize_t put = ::write(fd, from.data(), from.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return Status::from_errno("write", errno);
        from = from.subspan(static_cast<std::size_t>(put));
    }
    return Status::ok();
}

struct CachedFile {
    std::string path;
    std::uint64_t bytes;
    timespec used;
};

bool was_used_before(const CachedFile& a, const CachedFile& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// The images in the directory. Removes files that a killed writer left behind.
std::vector<CachedFile> list_files(const std::string& directory) {
    std::vector<CachedFile> files;
    DIR* dir = ::opendir(directory.c_str());
    if (dir == nullptr) return files;
    const std::time_t now = std::time(nullptr);
    while (const dirent* entry = ::readdir(dir)) {
        const std::string_view name = entry->d_name;
        const std::string path = directory + "/" + entry->d_name;
        struct stat info;
        if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (name.starts_with(kTemporaryPrefix) && info.st_mtime + kStaleTemporary_s < now) ::unlink(path.c_str());
        if (is_image_name(name)) files.push_back({path, static_cast<std::uint64_t>(info.st_size), info.st_mtim});
    }
    ::closedir(dir);
    return files;
}

}  // namespace

ImageCache::ImageCache(std::string directory, std::uint64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {
    if (directory_.empty()) return;
    Status usable = make_directories(directory_);
    if (usable && ::access(directory_.c_str(), R_OK | W_OK | X_OK) != 0) usable = Status::from_errno("access", errno);
    if (!usable) give_up_disk(usable);
}

void ImageCache::give_up_disk(const Status& reason) {
    log_event(LogLevel::warn, "image_cache_unusable", {{"directory", directory_}, {"reason", reason.text()}});
    directory_.clear();
}

std::string ImageCache::path_of(const wire::Hash& hash) const { return directory_ + "/" + to_hex(hash); }

ImageRef ImageCache::find(const wire::Hash& hash, std::uint64_t size_bytes) {
    if (ImageRef known = find_in_memory(hash)) return known->span().size() == size_bytes ? known : nullptr;
    return uses_disk() ? read_file(hash, size_bytes) : nullptr;
}

ImageRef ImageCache::find_in_memory(const wire::Hash& hash) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.hash == hash; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().image;
}

ImageRef ImageCache::read_file(const wire::Hash& hash, std::uint64_t size_bytes) {
    const std::string path = path_of(hash);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info;
    if (!fd || ::fstat(fd.get(), &info) != 0) return nullptr;
    if (size_bytes > kMaxImageBytes || static_cast<std::uint64_t>(info.st_size) != size_bytes) return nullptr;
    std::vector<std::byte> bytes(size_bytes);
    if (!read_all(fd.get(), bytes) || sha256(bytes) != hash) {
        log_event(LogLevel::warn, "cached_image_damaged", {{"path", path}});
        ::unlink(path.c_str());
        return nullptr;
    }
    ::futimens(fd.get(), nullptr);  // used just now
    return std::make_shared<const ImageBytes>(std::move(bytes));
}

Result<ImageRef> ImageCache::store(const wire::Hash& hash, std::vector<std::byte> bytes) {
    if (sha256(bytes) != hash)
        return Status::error(ErrorCode::invalid_argument, "image does not have the hash it was sent under");
    if (uses_disk() && bytes.size() <= max_bytes_) {
        if (Status written = write_file(hash, bytes); !written) give_up_disk(written);
        if (uses_disk()) evict();
    }
    auto image = std::make_shared<const ImageBytes>(std::move(bytes));
    if (!uses_disk()) keep_in_memory(hash, image);
    return ImageRef(image);
}

Status ImageCache::write_file(const wire::Hash& hash, std::span<const std::byte> bytes) {
    std::string temporary = directory_ + "/" + std::string(kTemporaryPrefix) + "XXXXXX";
    UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd) return Status::from_errno("mkostemp", errno);
    Status written = write_all(fd.get(), bytes);
    if (written && ::rename(temporary.c_str(), path_of(hash).c_str()) != 0)
        written = Status::from_errno("rename", errno);
    if (!written) ::unlink(temporary.c_str());
    return written;
}

void ImageCache::keep_in_memory(const wire::Hash& hash, ImageRef image) {
    kept_bytes_ += image->span().size();
    kept_.push_front({hash, std::move(image)});
    const std::uint64_t limit = std::min(max_bytes_, kMaxKeptBytes);
    while (kept_bytes_ > limit && kept_.size() > 1) {
        kept_bytes_ -= kept_.back().image->span().size();
        kept_.pop_back();
    }
}

void ImageCache::evict() {
    std::vector<CachedFile> files = list_files(directory_);
    std::uint64_t total = 0;
    for (const CachedFile& file : files) total += file.bytes;
    std::sort(files.begin(), files.end(), was_used_before);
    for (const CachedFile& file : files) {
        if (total <= max_bytes_) return;
        if (::unlink(file.path.c_str()) == 0) log_event(LogLevel::debug, "cached_image_evicted", {{"path", file.path}});
        total -= file.bytes;
    }
}

}  // namespace weft::executor
