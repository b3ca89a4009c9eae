#include "shim/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace weft::shim {
namespace {

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = ::write(descriptor, text.data(), text.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

}  // namespace

void Output::add(std::uint32_t kind, std::string_view text) {
    if (kind != 1 && kind != 2) return;
    std::lock_guard lock(mutex_);
    std::string& to = text_[kind - 1];
    if (to.size() + text.size() > kMaxBytes) return;
    to += text;
    has_text_.store(true, std::memory_order_relaxed);
}

// Says that there is no text only when it has been written: whoever returns from write() at once may look at it.
void Output::write_now() {
    std::lock_guard writing(write_mutex_);
    for (;;) {
        std::string text[2];
        {
            std::lock_guard lock(mutex_);
            for (int i = 0; i < 2; ++i) text[i].swap(text_[i]);
            if (text[0].empty() && text[1].empty()) return has_text_.store(false, std::memory_order_relaxed);
        }
        if (!text[0].empty()) {
            std::fflush(stdout);
            write_all(STDOUT_FILENO, text[0]);
        }
        write_all(STDERR_FILENO, text[1]);
    }
}

}  // namespace weft::shim
