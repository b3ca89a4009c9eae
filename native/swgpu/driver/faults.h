// What happens when an asynchronous operation fails: the context keeps the error, and one line goes to the log.
// Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <string_view>

#include "gen/cuda_abi.h"
#include "swgpu/engine/engine.h"

namespace weft::swdriver {

class Context;

CUresult to_result(engine::FaultKind kind);
// Makes the error sticky for the context; logs `text` if it is the context's first. Not under the scheduler's lock.
void report_failure(Context& context, CUresult error, std::string_view text);

}  // namespace weft::swdriver
