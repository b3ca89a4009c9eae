// Takes this process's standard output and error for what the driver writes there on behalf of kernels (printf,
// assert). Both become files in memory: writing never blocks, whoever writes, and nothing has to read meanwhile. Log
// lines of our own go to the real standard error. Design note: docs/design/executor.md, "Printing kernels".
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/fd.h"

namespace weft::executor {

class CapturedOutput {
  public:
    static constexpr std::size_t kPieceBytes = 32768;  // of one frame

    // nullptr: the system has no memory files; output stays where it was.
    static std::unique_ptr<CapturedOutput> start();
    // Hands out what was written since the last time, in pieces. kind: 1 standard output, 2 standard error.
    void take(const std::function<void(unsigned kind, std::string_view text)>& give);

  private:
    struct File {
        UniqueFd fd;
        std::uint64_t taken_bytes = 0;
    };
    void take_from(File& file, unsigned kind, const std::function<void(unsigned, std::string_view)>& give);

    File files_[2];
};

}  // namespace weft::executor
