// A channel with faults, for tests: it hands everything to another channel and, from a seed, cuts the connection,
// spoils bytes, cuts payload and frame lengths, or holds frames back for a while. It must not be used by the product.
// docs/design/transport.md.
#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "transport/channel.h"

namespace weft::transport {

struct Faults {
    std::uint64_t seed = 1;
    // The connection ends after this many received frames, as if the peer died. 0: never.
    std::uint64_t cut_after_frames = 0;
    // One of so many received frames has a random byte of its arguments or header (but not its size) changed. 0: none.
    std::uint32_t garbage_one_in = 0;
    // One of so many received frames loses its last bytes; size_bytes says so. 0: none.
    std::uint32_t truncate_one_in = 0;
    // One of so many polls gives nothing although a frame may be there; wait then returns at once. 0: none.
    std::uint32_t delay_one_in = 0;
};

// Takes what `inner` offers; the faults are those of the receiving direction.
std::unique_ptr<Channel> make_faulty(std::unique_ptr<Channel> inner, const Faults& faults);

}  // namespace weft::transport
