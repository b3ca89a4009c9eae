#include "swgpu/driver/faults.h"

#include <string>

#include "swgpu/driver/driver.h"
#include "swgpu/driver/log.h"

namespace weft::swdriver {

CUresult to_result(engine::FaultKind kind) {
    switch (kind) {
        case engine::FaultKind::none: return CUDA_SUCCESS;
        case engine::FaultKind::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
        case engine::FaultKind::out_of_memory: return CUDA_ERROR_OUT_OF_MEMORY;
        case engine::FaultKind::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
        case engine::FaultKind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
        case engine::FaultKind::invalid_pc: return CUDA_ERROR_INVALID_PC;
        case engine::FaultKind::assert_failed: return CUDA_ERROR_ASSERT;
        case engine::FaultKind::trap:
        case engine::FaultKind::stack_overflow: return CUDA_ERROR_LAUNCH_FAILED;
        case engine::FaultKind::deadlock:
        case engine::FaultKind::cancelled: return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    return CUDA_ERROR_UNKNOWN;
}

void report_failure(Context& context, CUresult error, std::string_view text) {
    if (!context.fail(error)) return;
    driver().scheduler.cancel(context);
    log_message(LogLevel::error, text);
}

}  // namespace weft::swdriver
