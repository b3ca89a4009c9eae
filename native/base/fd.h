// Owns one file descriptor. It must not report errors of close: nothing could be done about them.
// Design: docs/design/transport.md.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weft {

class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    // Closes what is owned and owns `fd` instead; errno stays as it was.
    void reset(int fd = -1) {
        int old = std::exchange(fd_, fd);
        if (old < 0) return;
        int saved = errno;
        ::close(old);
        errno = saved;
    }

  private:
    int fd_ = -1;
};

}  // namespace weft
