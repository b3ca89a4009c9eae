// Access of the program to pages that are not there just now (unified_memory.h): SIGSEGV handler and the thread that
// brings the pages. The handler only posts the address and sleeps, so it may run on any stack and interrupt any code;
// faults that are none of ours go to the handler that was there before. Design note: docs/design/unified-memory.md.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace weft::shim {

// Brings the page; on the thread of page faults, which blocks all signals. False: the address is none of ours.
using FaultHandler = bool (*)(std::uint64_t address, bool is_write);

// Starts the thread and takes SIGSEGV. Further calls only make sure that SIGSEGV is still ours: a program may have
// installed a handler since, which then becomes the one to hand on to.
Status take_page_faults(FaultHandler handler);

}  // namespace weft::shim
