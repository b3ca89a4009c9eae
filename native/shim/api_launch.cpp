// Launches. What a driver reports at the call is checked here; then one frame leaves and nobody waits.
#include <algorithm>
#include <cstring>

#include "gen/shim_api.h"
#include "shim/launch.h"
#include "shim/library.h"
#include "shim/occupancy.h"
#include "shim/submit.h"

namespace weft::shim {
namespace {

int attribute_of(const Device& device, CUdevice_attribute attribute) {
    return device.info.attributes.get(static_cast<std::size_t>(attribute)).value_or(0);
}

}  // namespace

CUresult check_launch_shape(const Function& function, const Device& device, const CUlaunchConfig& config) {
    const auto exceeds = [&](unsigned value, CUdevice_attribute limit) {
        return value == 0 || value > static_cast<unsigned>(attribute_of(device, limit));
    };
    if (exceeds(config.gridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
        exceeds(config.gridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
        exceeds(config.gridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) ||
        exceeds(config.blockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
        exceeds(config.blockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
        exceeds(config.blockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z))
        return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    if (threads > static_cast<std::uint64_t>(attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)))
        return CUDA_ERROR_INVALID_VALUE;
    const int most = function.info->attributes.get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).value_or(1024);
    if (threads > static_cast<std::uint64_t>(most)) return CUDA_ERROR_INVALID_VALUE;
    const int allowed = function.max_dynamic_shared_bytes.load(std::memory_order_relaxed);
    if (config.sharedMemBytes > static_cast<unsigned>(allowed)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

}  // namespace weft::shim

namespace weft::shim::api {
namespace {

int attribute_of(const Device& device, CUdevice_attribute attribute) {
    return device.info.attributes.get(static_cast<std::size_t>(attribute)).value_or(0);
}

// The packed parameters of `extra`: the one form in which the program packs them itself.
CUresult read_extra(void** extra, const std::byte** buffer, std::size_t* size) {
    for (int i = 0; i < 4 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = static_cast<const std::byte*>(extra[i + 1]);
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *size = *static_cast<const std::size_t*>(extra[i + 1]);
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return *buffer != nullptr || *size == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool is_forwarded(CUlaunchAttributeID id) {
    // Handles inside attributes would mean nothing on the other side.
    return id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT &&
           id != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE && id != CU_LAUNCH_ATTRIBUTE_IGNORE;
}

struct Parameters {
    void** pointers = nullptr;
    const std::byte* packed = nullptr;
    std::size_t bytes = 0;
};

CUresult collect(const Function& function, void** kernel_parameters, void** extra, Parameters* parameters) {
    parameters->bytes = function.parameter_bytes;
    if (extra != nullptr) {
        if (kernel_parameters != nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::size_t given = 0;
        if (const CUresult result = read_extra(extra, &parameters->packed, &given); result != CUDA_SUCCESS)
            return result;
        if (given > wire::kMaxInlineBytes) return CUDA_ERROR_INVALID_VALUE;
        parameters->bytes = given;
        return CUDA_SUCCESS;
    }
    if (kernel_parameters == nullptr && !function.info->parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < function.info->parameters.size(); ++i)
        if (kernel_parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    parameters->pointers = kernel_parameters;
    return CUDA_SUCCESS;
}

void pack(const Function& function, const Parameters& parameters, std::byte* to) {
    if (parameters.pointers == nullptr) {
        if (parameters.bytes != 0) std::memcpy(to, parameters.packed, parameters.bytes);
        return;
    }
    std::size_t i = 0;
    for (const wire::ParameterInfo& parameter : function.info->parameters)
        std::memcpy(to + parameter.offset, parameters.pointers[i++], parameter.size_bytes);
}

CUresult capture_kernel(const CUlaunchConfig& config, const Function& function, CUfunction handle,
                        const Parameters& parameters, Stream& stream) {
    graph::KernelWork work;
    work.function = handle;
    const unsigned grid[] = {config.gridDimX, config.gridDimY, config.gridDimZ};
    const unsigned block[] = {config.blockDimX, config.blockDimY, config.blockDimZ};
    std::copy_n(grid, 3, work.grid);
    std::copy_n(block, 3, work.block);
    work.shared_bytes = config.sharedMemBytes;
    work.parameters.resize(parameters.bytes);
    pack(function, parameters, work.parameters.data());
    for (unsigned i = 0; i < config.numAttrs; ++i)
        if (is_forwarded(config.attrs[i].id)) work.attributes.push_back(config.attrs[i]);
    graph::FunctionShape shape;
    shape.parameter_bytes = function.parameter_bytes;
    for (const wire::ParameterInfo& parameter : function.info->parameters)
        shape.parameters.push_back({parameter.offset, parameter.size_bytes});
    return graph::capture_work(stream.capturing, std::move(work), std::move(shape));
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** kernel_parameters, void** extra) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Function* function;
    if (const CUresult result = resolve_function(handle, *context, &function); result != CUDA_SUCCESS) return result;
    Stream* stream;
    if (const CUresult result = find_stream(*context, config.hStream, &stream); result != CUDA_SUCCESS) return result;
    if (stream->context != function->module->context) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult result = check_launch_shape(*function, *context->device, config); result != CUDA_SUCCESS)
        return result;
    Parameters parameters;
    if (const CUresult result = collect(*function, kernel_parameters, extra, &parameters); result != CUDA_SUCCESS)
        return result;

    if (is_capturing(*stream)) [[unlikely]]
        return capture_kernel(config, *function, handle, parameters, *stream);

    std::uint32_t attributes = 0;
    for (unsigned i = 0; i < config.numAttrs; ++i) attributes += is_forwarded(config.attrs[i].id) ? 1 : 0;
    if (attributes > 64) return CUDA_ERROR_INVALID_VALUE;
    if (g_stats != nullptr) g_stats->launches.fetch_add(1, std::memory_order_relaxed);
    std::vector<std::byte> packed;
    if (UnifiedMemory& unified = Runtime::get()->unified(); unified.is_used()) [[unlikely]] {
        // Parameters may lie in unified memory, which is out of reach when the frame is written.
        packed.resize(parameters.bytes);
        pack(*function, parameters, packed.data());
        parameters = {nullptr, packed.data(), packed.size()};
        if (const CUresult ready = unified.before_work(*stream); ready != CUDA_SUCCESS) return ready;
    }
    return submit<wire::Launch>(*stream, attributes * sizeof(CUlaunchAttribute) + parameters.bytes,
                                [&](auto& frame, std::byte* tail) {
                                    frame.module = function->module->number;
                                    frame.function = function->index;
                                    frame.grid_x = config.gridDimX;
                                    frame.grid_y = config.gridDimY;
                                    frame.grid_z = config.gridDimZ;
                                    frame.block_x = config.blockDimX;
                                    frame.block_y = config.blockDimY;
                                    frame.block_z = config.blockDimZ;
                                    frame.shared_bytes = config.sharedMemBytes;
                                    frame.parameter_bytes = static_cast<std::uint32_t>(parameters.bytes);
                                    frame.attribute_count = attributes;
                                    for (unsigned i = 0; i < config.numAttrs; ++i) {
                                        if (!is_forwarded(config.attrs[i].id)) continue;
                                        std::memcpy(tail, &config.attrs[i], sizeof(CUlaunchAttribute));
                                        tail += sizeof(CUlaunchAttribute);
                                    }
                                    pack(*function, parameters, tail);
                                });
}

// All blocks of a cooperative grid must be resident at once.
CUresult check_cooperative(const CUlaunchConfig& config, CUfunction handle) {
    bool cooperative = false;
    for (unsigned i = 0; i < config.numAttrs; ++i)
        cooperative |= config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && config.attrs[i].value.cooperative != 0;
    if (!cooperative) return CUDA_SUCCESS;
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    if (threads == 0 || threads > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    int blocks = 0;
    if (const CUresult result =
            ask_occupancy(*context, handle, static_cast<int>(threads), config.sharedMemBytes, 0, &blocks);
        result != CUDA_SUCCESS)
        return result;
    const std::uint64_t room =
        static_cast<std::uint64_t>(blocks) *
        static_cast<std::uint64_t>(attribute_of(*context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    const std::uint64_t wanted = std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
    return wanted <= room ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

}  // namespace

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void** kernel_parameters) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, &attribute, 1};
    return cuLaunchKernelEx(&config, function, kernel_parameters, nullptr);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void** kernel_parameters, void** extra) {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
    return launch(config, function, kernel_parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_parameters, void** extra) {
    if (config->numAttrs != 0 && config->attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_cooperative(*config, function); result != CUDA_SUCCESS) return result;
    return launch(*config, function, kernel_parameters, extra);
}

}  // namespace weft::shim::api
