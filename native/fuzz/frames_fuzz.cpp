// See frames_fuzz.h.
#include "fuzz/frames_fuzz.h"

#include "base/log.h"
#include "executor/memory_channel.h"
#include "executor/session.h"
#include "executor/testing_driver.h"

namespace weft::fuzz {

namespace {

using executor::MemoryChannel;
using executor::Session;
using executor::testing::FakeDriver;

constexpr int kTurnsToQuiet = 64;

// Jobs of the helper thread come back in their own time: the opening waits for them, so that a run depends on its seed
// alone.
void settle(Session& session) {
    for (int quiet = 0; quiet < 2 && !session.is_over();) {
        if (session.turn()) {
            quiet = 0;
        } else if (session.has_jobs()) {
            session.wait();
        } else {
            ++quiet;
        }
    }
}

}  // namespace

FuzzedSession fuzz_session(Choices& choices, std::uint64_t max_frames, std::uint64_t spoil_one_in, bool direct_access) {
    FakeDriver& fake = FakeDriver::get();
    fake.reset(direct_access);
    const driver::DriverTable table = fake.table();
    FuzzedSession result;
    {
        MemoryChannel channel([](auto, auto) {},
                              choices.one_in(2) ? transport::PathKind::tcp : transport::PathKind::shm);
        Session session(channel, table, {});
        if (!session.open()) return result;
        FrameWriter writer(choices, spoil_one_in);
        for (const WrittenFrame& frame : writer.opening()) {
            channel.push(frame.frame, frame.payload);
            settle(session);
        }
        while (result.frames < max_frames && !session.is_over()) {
            const std::uint64_t burst = 1 + choices.below(64);
            for (std::uint64_t i = 0; i < burst; ++i) {
                const WrittenFrame frame = writer.next();
                channel.push(frame.frame, frame.payload);
            }
            fake.automatic = !choices.one_in(3);
            if (!fake.automatic) fake.run_one(static_cast<int>(choices.below(6)));
            if (choices.one_in(4)) fake.run_all();
            for (int i = 0; i < kTurnsToQuiet && session.turn(); ++i) {
            }
            result.frames = session.counters().frames;
        }
        fake.automatic = true;
        fake.run_all();
        for (int i = 0; i < kTurnsToQuiet && !session.is_over() && session.turn(); ++i) {
        }
        result.frames = session.counters().frames;
        result.ended = session.is_over();
        result.reason = session.end().text;
    }
    if (fake.live_contexts() != 0) result.leaked += std::to_string(fake.live_contexts()) + " contexts ";
    if (fake.live_events() != 0) result.leaked += std::to_string(fake.live_events()) + " events ";
    if (fake.mapped_bytes() != 0) result.leaked += std::to_string(fake.mapped_bytes()) + " mapped bytes";
    return result;
}

}  // namespace weft::fuzz
