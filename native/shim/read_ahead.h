// A loop that synchronises its context and then copies a result to the host would wait twice. A context remembers which
// small piece of device memory was copied right after a synchronisation; the next synchronisation brings it along, and
// the copy is answered without a wait if no work was submitted in between. Thread-safe. docs/design/shim.md, "Reading
// ahead".
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "gen/cuda_abi.h"

namespace weft::shim {

class ReadAhead {
  public:
    struct Range {
        CUdeviceptr source = 0;
        std::uint32_t size_bytes = 0;
        bool operator==(const Range&) const = default;
    };

    // What the next synchronisation shall bring; size 0: nothing. Bytes that were brought and not used end the habit.
    Range wanted();
    // The context was synchronised when `work` was the newest work; `bytes` are those of `range`, or nothing.
    void synchronised(std::uint64_t work, Range range, std::span<const std::byte> bytes);
    // A copy to the host while `work` is the newest work. True: `destination` has the bytes. False: the copy has to be
    // made, and is remembered if it comes right after a synchronisation.
    bool take(std::uint64_t work, Range range, void* destination);

  private:
    std::mutex mutex_;
    Range wanted_, held_;
    std::uint64_t work_ = UINT64_MAX;  // the newest work at the last synchronisation
    std::vector<std::byte> bytes_;     // of held_; empty: none
    bool used_ = true;
};

}  // namespace weft::shim
