// --record: writes every frame that leaves, with its payload, so that `weft replay` can run the stream again.
// File format: docs/reference/recording.md. Called with the append role held, so frames are in order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace weft::shim {

class Recorder {
  public:
    static Result<std::unique_ptr<Recorder>> open(const std::string& path);
    void frame(std::span<const std::byte> frame, std::span<const std::byte> payload);

  private:
    explicit Recorder(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
    bool failed_ = false;
};

}  // namespace weft::shim
