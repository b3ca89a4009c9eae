// The plain limits: the least that any remoting over this memory and this network stack costs.
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "limits.h"
#include "transport/pair.h"

namespace weft::bench {

namespace {

constexpr int kRoundTrips = 20'000;
constexpr int kSleepingRoundTrips = 4'000;
constexpr int kIdleRoundTrips = 300;
constexpr int kIdleUs = 1000;
constexpr int kStreamRepeats = 5;
constexpr std::size_t kStreamPieceBytes = 256 << 10;

struct SharedWords {
    alignas(64) std::atomic<std::uint32_t> ping{0};
    std::byte ping_message[kMessageBytes];
    alignas(64) std::atomic<std::uint32_t> pong{0};
    std::byte pong_message[kMessageBytes];
};

SharedWords* make_words() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : new (page) SharedWords;
}

void await_word(std::atomic<std::uint32_t>& word, std::uint32_t value, bool sleeping) {
    while (word.load(std::memory_order_acquire) != value) {
        if (sleeping) {
            ::syscall(SYS_futex, &word, FUTEX_WAIT, value - 1, nullptr, nullptr, 0);
        } else {
            cpu_pause();
        }
    }
}

void set_word(std::atomic<std::uint32_t>& word, std::uint32_t value, bool sleeping) {
    word.store(value, std::memory_order_release);
    if (sleeping) ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

double word_round_trip_us(bool sleeping, std::uint32_t rounds, bool after_idle = false) {
    SharedWords* words = make_words();
    if (words == nullptr) return 0;
    std::vector<double> samples;
    {
        PeerProcess peer([&] {
            std::byte message[kMessageBytes];
            for (std::uint32_t i = 1; i <= rounds; ++i) {
                await_word(words->ping, i, sleeping);
                std::memcpy(message, words->ping_message, sizeof message);
                std::memcpy(words->pong_message, message, sizeof message);
                set_word(words->pong, i, sleeping);
            }
        });
        std::byte message[kMessageBytes] = {};
        for (std::uint32_t i = 1; i <= rounds; ++i) {
            if (after_idle) ::usleep(kIdleUs);
            const std::uint64_t start = now_ns();
            std::memcpy(words->ping_message, message, sizeof message);
            set_word(words->ping, i, sleeping);
            await_word(words->pong, i, sleeping);
            std::memcpy(message, words->pong_message, sizeof message);
            samples.push_back(static_cast<double>(now_ns() - start) / 1000);
        }
    }
    ::munmap(words, 4096);
    return percentile(std::move(samples), 0.5);
}

void set_no_delay(int socket) {
    int one = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// All of it, reading again and again without sleeping if `polling`. False at the end of the stream.
bool read_all(int socket, std::byte* to, std::size_t size_bytes, bool polling) {
    while (size_bytes > 0) {
        const ssize_t got = ::recv(socket, to, std::min(size_bytes, kStreamPieceBytes), polling ? MSG_DONTWAIT : 0);
        if (got == 0) return false;
        if (got < 0) continue;
        to += got;
        size_bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

void write_all(int socket, const std::byte* from, std::size_t size_bytes) {
    while (size_bytes > 0) {
        const ssize_t sent = ::send(socket, from, std::min(size_bytes, kStreamPieceBytes), MSG_NOSIGNAL);
        if (sent <= 0) return;
        from += sent;
        size_bytes -= static_cast<std::size_t>(sent);
    }
}

double measure_tcp_round_trip_us(bool polling, int rounds, bool after_idle) {
    auto sockets = transport::make_socket_pair(transport::PathKind::tcp);
    if (!sockets) return 0;
    set_no_delay(sockets->first.get());
    set_no_delay(sockets->second.get());
    std::vector<double> samples;
    PeerProcess peer([&] {
        sockets->first.reset();
        std::byte message[kMessageBytes];
        while (read_all(sockets->second.get(), message, sizeof message, polling)) {
            write_all(sockets->second.get(), message, sizeof message);
        }
    });
    sockets->second.reset();
    std::byte message[kMessageBytes] = {};
    for (int i = 0; i < rounds; ++i) {
        if (after_idle) ::usleep(kIdleUs);
        const std::uint64_t start = now_ns();
        write_all(sockets->first.get(), message, sizeof message);
        read_all(sockets->first.get(), message, sizeof message, polling);
        samples.push_back(static_cast<double>(now_ns() - start) / 1000);
    }
    sockets->first.reset();
    return percentile(std::move(samples), 0.5);
}

}  // namespace

PeerProcess::PeerProcess(const std::function<void()>& peer) : pid_(::fork()) {
    if (pid_ != 0) return;
    peer();
    ::_exit(0);
}

PeerProcess::~PeerProcess() { ::waitpid(pid_, nullptr, 0); }

double PeerProcess::cpu_s() const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid_);
    std::FILE* file = std::fopen(path, "r");
    if (file == nullptr) return 0;
    unsigned long user = 0, system = 0;
    const int read = std::fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    std::fclose(file);
    return read == 2 ? static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)) : 0;
}

double PeerProcess::sleeps() const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/status", pid_);
    std::FILE* file = std::fopen(path, "r");
    if (file == nullptr) return 0;
    char line[256];
    unsigned long count = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1) break;
    }
    std::fclose(file);
    return static_cast<double>(count);
}

double percentile(std::vector<double> samples, double fraction) {
    if (samples.empty()) return 0;
    std::sort(samples.begin(), samples.end());
    return samples[static_cast<std::size_t>(fraction * static_cast<double>(samples.size() - 1))];
}

std::vector<std::byte> make_bulk() {
    std::vector<std::byte> bulk(kBulkBytes);
    for (std::size_t i = 0; i < bulk.size(); i += 64) bulk[i] = static_cast<std::byte>(i >> 6);
    return bulk;
}

double memcpy_gb_per_s() {
    const std::vector<std::byte> from = make_bulk();
    std::vector<std::byte> to = make_bulk();
    double best = 0;
    for (int repeat = 0; repeat < kStreamRepeats; ++repeat) {
        const std::uint64_t start = now_ns();
        std::memcpy(to.data(), from.data(), kBulkBytes);
        asm volatile("" : : "r"(to.data()) : "memory");
        best = std::max(best, static_cast<double>(kBulkBytes) / static_cast<double>(now_ns() - start));
    }
    return best;
}

double ring_round_trip_us() { return word_round_trip_us(false, kRoundTrips); }

double futex_round_trip_us() { return word_round_trip_us(true, kSleepingRoundTrips); }

double futex_round_trip_after_idle_us() { return word_round_trip_us(true, kIdleRoundTrips, true); }

double tcp_round_trip_us() { return measure_tcp_round_trip_us(true, kRoundTrips, false); }

double tcp_round_trip_after_idle_us() { return measure_tcp_round_trip_us(false, kIdleRoundTrips, true); }

double tcp_stream_gb_per_s(bool polling) {
    auto sockets = transport::make_socket_pair(transport::PathKind::tcp);
    if (!sockets) return 0;
    set_no_delay(sockets->first.get());
    PeerProcess peer([&] {
        sockets->first.reset();
        std::vector<std::byte> to = make_bulk();
        std::byte done{};
        write_all(sockets->second.get(), &done, 1);
        while (read_all(sockets->second.get(), to.data(), to.size(), polling))
            write_all(sockets->second.get(), &done, 1);
    });
    sockets->second.reset();
    const std::vector<std::byte> from = make_bulk();
    std::byte done;
    read_all(sockets->first.get(), &done, 1, false);
    double best = 0;
    for (int repeat = 0; repeat < kStreamRepeats; ++repeat) {
        const std::uint64_t start = now_ns();
        write_all(sockets->first.get(), from.data(), from.size());
        read_all(sockets->first.get(), &done, 1, false);
        best = std::max(best, static_cast<double>(kBulkBytes) / static_cast<double>(now_ns() - start));
    }
    sockets->first.reset();
    return best;
}

}  // namespace weft::bench
