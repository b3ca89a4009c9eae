// Runs one session on the frames that a source of choices leads to, until the session ends or the frames are used up.
#pragma once

#include <cstdint>
#include <string>

#include "fuzz/frame_writer.h"

namespace weft::fuzz {

struct FuzzedSession {
    std::uint64_t frames = 0;  // taken by the session
    bool ended = false;        // by the session itself
    std::string reason;
    std::string leaked;  // what of the driver was not given back
};

// direct_access: the driver lets the CPU touch device memory. The driver's work is complete at random times.
FuzzedSession fuzz_session(Choices& choices, std::uint64_t max_frames, std::uint64_t spoil_one_in, bool direct_access);

}  // namespace weft::fuzz
