#include "swgpu/driver/output.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "swgpu/driver/context.h"

namespace weft::swdriver {
namespace {

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = ::write(descriptor, text.data(), text.size());
        if (wrote <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

}  // namespace

void DeviceOutput::add(std::string_view text, bool is_error) {
    const std::size_t limit = limit_bytes_.load(std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (text.size() > limit && !is_error) return;
    lines_.push_back({std::string(text), is_error});
    bytes_ += text.size();
    while (bytes_ > limit && lines_.size() > 1) {
        bytes_ -= lines_.front().text.size();
        lines_.pop_front();
    }
    has_text_.store(true, std::memory_order_release);
}

void DeviceOutput::flush() {
    if (!has_text_.load(std::memory_order_acquire)) return;
    std::deque<Line> lines;
    {
        std::lock_guard lock(mutex_);
        lines.swap(lines_);
        bytes_ = 0;
        has_text_.store(false, std::memory_order_relaxed);
    }
    std::fflush(stdout);  // what the program printed before comes first
    for (const bool errors : {false, true}) {
        std::string text;
        for (const Line& line : lines)
            if (line.is_error == errors) text += line.text;
        write_all(errors ? STDERR_FILENO : STDOUT_FILENO, text);
    }
}

OutputPoint::~OutputPoint() {
    if (const Ref<Context> context = thread_state::current()) context->output.flush();
}

}  // namespace weft::swdriver
