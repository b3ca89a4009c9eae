// Random, truncated and changed frames against real sessions: each ends with a reason, none crashes or leaks.
// WEFT_FUZZ_FRAMES sets how many frames (default 1,000,000), WEFT_FUZZ_SEED where to begin.
#include "fuzz/frames_fuzz.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"
#include "base/random.h"

namespace weft::fuzz {
namespace {

constexpr std::uint64_t kDefaultFrames = 1'000'000;
constexpr std::uint64_t kFramesPerSession = 2000;

class SeededChoices : public Choices {
  public:
    explicit SeededChoices(std::uint64_t seed) : random_(seed) {}
    std::uint64_t next() override { return random_.next(); }

  private:
    Random random_;
};

std::uint64_t setting(const char* name, std::uint64_t standard) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : standard;
}

TEST(FramesFuzz, EverySessionEndsWithAReasonAndGivesEverythingBack) {
    set_log_level(LogLevel::error);
    const std::uint64_t wanted = setting("WEFT_FUZZ_FRAMES", kDefaultFrames);
    std::uint64_t seed = setting("WEFT_FUZZ_SEED", 1);
    std::uint64_t frames = 0, sessions = 0, ended = 0;
    for (; frames < wanted; ++seed, ++sessions) {
        SCOPED_TRACE("WEFT_FUZZ_SEED=" + std::to_string(seed));
        SeededChoices choices(seed);
        // Most sessions see damage rarely enough to get far; some see it at once.
        const std::uint64_t spoil_one_in = seed % 4 == 0 ? 3 : 200 + seed % 800;
        const FuzzedSession session = fuzz_session(choices, kFramesPerSession, spoil_one_in, seed % 2 == 0);
        ASSERT_GT(session.frames, 0u);
        ASSERT_EQ(session.leaked, "");
        if (session.ended) {
            ASSERT_FALSE(session.reason.empty());
            ++ended;
        }
        frames += session.frames;
    }
    EXPECT_GT(ended, sessions / 2) << "damage has to be noticed";
    RecordProperty("sessions", std::to_string(sessions));
    RecordProperty("frames", std::to_string(frames));
}

TEST(FramesFuzz, UndamagedFramesKeepTheSessionAlive) {
    set_log_level(LogLevel::error);
    // Numbers repeat and handles dangle, so some sessions end for good reasons; most frames have to be taken all the
    // same.
    std::uint64_t frames = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SeededChoices choices(seed);
        const FuzzedSession session = fuzz_session(choices, 500, 0, seed % 2 == 0);
        EXPECT_EQ(session.leaked, "");
        frames += session.frames;
    }
    EXPECT_GT(frames, 100u);
}

}  // namespace
}  // namespace weft::fuzz
