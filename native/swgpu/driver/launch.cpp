#include "swgpu/driver/launch.h"

#include <cstring>

#include "swgpu/driver/api.h"
#include "swgpu/driver/log.h"
#include "swgpu/driver/memory.h"

namespace weft::swdriver {

const bool kImmediate = false;

namespace {

// Zeroed memory in which the blocks of a cooperative grid count who has reached its barrier (grid.sync() of cooperative
// groups); kernels find it through two environment registers. Freed with its last reference; null: out of memory.
std::shared_ptr<void> make_grid_workspace(const Context& context) {
    constexpr std::size_t kBytes = 64;
    Device& device = *driver().devices[static_cast<std::size_t>(context.device())];
    const auto address = allocate_device(device, context, kBytes, MemoryKind::global);
    if (!address) return nullptr;
    std::memset(reinterpret_cast<void*>(*address), 0, kBytes);
    return {reinterpret_cast<void*>(*address),
            [](void* memory) { (void)free_device(reinterpret_cast<std::uint64_t>(memory), MemoryKind::global); }};
}

}  // namespace

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
    std::shared_ptr<void> workspace;
    if (request.cooperative) {
        workspace = make_grid_workspace(context);
        if (!workspace) return CUDA_ERROR_OUT_OF_MEMORY;
        config.grid_workspace = reinterpret_cast<std::uint64_t>(workspace.get());
    }
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
    operation->workspace = std::move(workspace);
    operation->stream = Ref<Stream>(&request.stream);
    driver().scheduler.enqueue(request.stream, std::move(operation));
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver
