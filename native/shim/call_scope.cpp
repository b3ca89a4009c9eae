#include "shim/call_scope.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace weft::shim {

StatsPage* g_stats = nullptr;
bool g_tracing = false;

namespace {

int g_trace_descriptor = -1;
std::int64_t g_trace_zero_ns = 0;
thread_local std::int64_t t_waited_ns = 0;
thread_local int t_depth = 0;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

void open_stats(const std::string& path) {
    if (path.empty()) return;
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    void* page = ::mmap(nullptr, kStatsPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (page == MAP_FAILED) return;
    if (static_cast<StatsPage*>(page)->magic == kStatsMagic) g_stats = static_cast<StatsPage*>(page);
}

bool open_trace(const char* path) {
    g_trace_descriptor = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    g_trace_zero_ns = now_ns();
    g_tracing = g_trace_descriptor >= 0;
    return g_tracing;
}

CallScope::WaitTimer::WaitTimer() {
    if (g_tracing) start_ns_ = now_ns();
}

CallScope::WaitTimer::~WaitTimer() {
    if (start_ns_ != 0) t_waited_ns += now_ns() - start_ns_;
}

void CallScope::start_trace() {
    if (t_depth++ == 0) t_waited_ns = 0;
    start_ns_ = now_ns();
}

void CallScope::end_trace(CUresult result) {
    if (start_ns_ == 0) return;  // tracing began inside this call
    --t_depth;
    const std::int64_t end_ns = now_ns();
    char line[256];
    const int length = std::snprintf(line, sizeof line,
                                     "{\"call\":\"%s\",\"pid\":%d,\"thread\":%ld,\"start_us\":%.3f,\"duration_us\":%."
                                     "3f,\"wait_us\":%.3f,\"result\":%d}\n",
                                     call_name(call_), static_cast<int>(::getpid()), ::syscall(SYS_gettid),
                                     static_cast<double>(start_ns_ - g_trace_zero_ns) / 1e3,
                                     static_cast<double>(end_ns - start_ns_) / 1e3,
                                     static_cast<double>(t_waited_ns) / 1e3, static_cast<int>(result));
    if (length > 0) [[maybe_unused]]
        const ssize_t written = ::write(g_trace_descriptor, line, static_cast<std::size_t>(length));
}

}  // namespace weft::shim
