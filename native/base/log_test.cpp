// Log lines: one line per event, values that need it are quoted.
#include "base/log.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Log, writes_one_event_per_line) {
    EXPECT_EQ(format_log_line(LogLevel::warn, "session_closed", {{"reason", "bad frame\nhere"}, {"bytes", 12}}),
              "weft: warn session_closed reason=\"bad frame here\" bytes=12");
}

TEST(Log, knows_its_levels_and_falls_back_to_warn) {
    EXPECT_EQ(parse_log_level("trace"), LogLevel::trace);
    EXPECT_EQ(parse_log_level("error"), LogLevel::error);
    EXPECT_EQ(parse_log_level("loud"), LogLevel::warn);
}

TEST(Log, leaves_out_what_is_above_the_level) {
    set_log_level(LogLevel::info);
    EXPECT_TRUE(log_enabled(LogLevel::warn));
    EXPECT_FALSE(log_enabled(LogLevel::debug));
    set_log_level(LogLevel::warn);
}

}  // namespace
}  // namespace weft
