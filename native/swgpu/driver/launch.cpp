#include "swgpu/driver/launch.h"

#include "swgpu/driver/api.h"
#include "swgpu/driver/log.h"

namespace weft::swdriver {

const bool kImmediate = false;

CUresult start_launch(const LaunchRequest& request) {
    auto kernel = request.function.kernel();
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    Context& context = request.stream.context();
    context.output.flush();
    engine::LaunchConfig config;
    config.grid = {request.config.gridDimX, request.config.gridDimY, request.config.gridDimZ};
    config.block = {request.config.blockDimX, request.config.blockDimY, request.config.blockDimZ};
    config.dynamic_shared_bytes = request.config.sharedMemBytes;
    config.parameters = request.parameters;
    config.memory = &driver().space;
    config.output = &context.output;
    std::size_t stack_bytes = 0;
    if (context.get_limit(CU_LIMIT_STACK_SIZE, &stack_bytes))
        config.stack_bytes = static_cast<std::uint32_t>(stack_bytes);
    config.cooperative = request.cooperative;
    config.grid_id = request.grid_id;
    int processors = 1;
    driver().devices[0]->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors);
    config.sm_count = static_cast<std::uint32_t>(processors);
    auto launch = engine::Launch::create(std::move(kernel), config);
    if (!launch) {
        log_message(LogLevel::error, "launch of '" + request.function.info.name + "': " + launch.status().text());
        return launch.status().code() == ErrorCode::out_of_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    auto operation = std::make_unique<KernelOperation>();
    operation->launch = std::move(*launch);
    operation->module = Ref<Object>(request.function.module.get());
    operation->stream = Ref<Stream>(&request.stream);
    driver().scheduler.enqueue(request.stream, std::move(operation));
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver
