// Lines for the person who runs the program: stderr, one line each, led by "weft: ". Never more than one write per
// line.
#pragma once

#include <string_view>

namespace weft::shim {

void log_line(std::string_view text);
// Only the first time in this process for this key.
void log_once(std::string_view key, std::string_view text);

}  // namespace weft::shim
