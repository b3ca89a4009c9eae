#include "shim/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace weft::shim {
namespace {

// Standard output leads into a pipe meanwhile, which a writer of much text fills.
class PipedOutput {
  public:
    PipedOutput() : before_(::dup(STDOUT_FILENO)) {
        EXPECT_EQ(::pipe(ends_), 0);
        ::dup2(ends_[1], STDOUT_FILENO);
    }
    ~PipedOutput() {
        ::dup2(before_, STDOUT_FILENO);
        for (const int descriptor : {before_, ends_[0], ends_[1]}) ::close(descriptor);
    }
    std::size_t read(std::size_t bytes) {
        std::string buffer(bytes, '\0');
        const ssize_t got = ::read(ends_[0], buffer.data(), bytes);
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }

  private:
    int ends_[2] = {-1, -1};
    int before_;
};

// The text of a large print came after the call that synchronises had returned: another thread had taken it and was
// still writing.
TEST(Output, IsWrittenWhenWriteReturnsWhoeverWritesIt) {
    constexpr std::size_t kBytes = 1u << 20;  // more than a pipe holds
    PipedOutput pipe;
    Output output;
    output.add(1, std::string(kBytes, 'x'));
    std::thread first([&] { output.write(); });
    std::size_t read = pipe.read(1);  // it has begun, and cannot end before everything is read
    std::atomic<bool> returned{false};
    std::size_t read_when_returned = 0;
    std::atomic<std::size_t> total{read};
    std::thread second([&] {
        output.write();
        read_when_returned = total.load();
        returned = true;
    });
    while (total < kBytes) total += pipe.read(4096);
    first.join();
    second.join();
    EXPECT_TRUE(returned);
    EXPECT_GE(read_when_returned + (1u << 17), kBytes) << "at most what a pipe holds was left to read";
}

}  // namespace
}  // namespace weft::shim
