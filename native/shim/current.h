// The calling thread's stack of current contexts and its per-thread default streams. Plain data, so that nothing runs
// at exit; per-thread streams are destroyed when their thread ends.
#pragma once

#include <cstdint>

#include "gen/cuda_abi.h"
#include "shim/objects.h"

namespace weft::shim {

// The context on top of the stack, or null. May be one that was destroyed since: check with usable_context.
Context* current_context();
void set_current_context(Context* context);  // replaces the top; null pops it off
CUresult push_context(Context* context);
Context* pop_context();  // null: the stack is empty

// The current context if it can be used now: INVALID_CONTEXT when there is none, CONTEXT_IS_DESTROYED, a lost session,
// or an error that is due.
CUresult usable_context(Context** context);

// The stream behind a handle in the current context: 0 and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a stream of the
// program.
CUresult find_stream(Context& context, CUstream handle, Stream** stream);

}  // namespace weft::shim
