// Launches. The configuration is checked at the call; what happens inside the kernel is the scheduler's and the
// engine's.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "swgpu/driver/api.h"
#include "swgpu/driver/launch.h"
#include "swgpu/driver/module.h"
#include "swgpu/driver/occupancy.h"

using namespace weft::swdriver;

namespace {

constexpr unsigned kMaxGridX = 2147483647, kMaxGridY = 65535, kMaxGridZ = 65535;
constexpr unsigned kMaxBlockX = 1024, kMaxBlockY = 1024, kMaxBlockZ = 64;
constexpr std::size_t kMaxParameterBytes = 32764;

std::atomic<std::uint64_t> next_grid_id{1};

// Launch attributes that change something here; the others are only hints.
struct Attributes {
    bool cooperative = false;
    Ref<Event> completion;
};

CUresult read_attributes(const CUlaunchConfig& config, Attributes* read) {
    if (config.numAttrs > 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        switch (attribute.id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: read->cooperative = attribute.value.cooperative != 0; break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
                const auto& size = attribute.value.clusterDim;
                if (size.x != 1 || size.y != 1 || size.z != 1) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
                break;
            }
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                read->completion = find<Event>(attribute.value.programmaticEvent.event);
                if (!read->completion) return CUDA_ERROR_INVALID_HANDLE;
                break;
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
                read->completion = find<Event>(attribute.value.launchCompletionEvent.event);
                if (!read->completion) return CUDA_ERROR_INVALID_HANDLE;
                break;
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                if (attribute.value.deviceUpdatableKernelNode.deviceUpdatable != 0) return CUDA_ERROR_NOT_SUPPORTED;
                break;
            default:
                if (attribute.id < 0 || attribute.id > CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE)
                    return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult check_cooperative(const CUlaunchConfig& config, const Function& function, const FunctionSettings& settings,
                           const Device& device) {
    int processors = 0;
    device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors);
    const int threads = static_cast<int>(config.blockDimX * config.blockDimY * config.blockDimZ);
    const std::uint64_t room =
        static_cast<std::uint64_t>(active_blocks(function.info, settings, threads, config.sharedMemBytes)) *
        static_cast<unsigned>(processors);
    const std::uint64_t blocks = std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
    return blocks <= room ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

// The packed buffer of CU_LAUNCH_PARAM_BUFFER_POINTER.
CUresult extra_buffer(void** extra, const void** buffer, std::size_t* size) {
    bool has_size = false;
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            *buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            if (extra[i + 1] == nullptr) return CUDA_ERROR_INVALID_VALUE;
            *size = *static_cast<const std::size_t*>(extra[i + 1]);
            has_size = true;
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return *buffer != nullptr && has_size && *size <= kMaxParameterBytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Packs the parameters at their offsets into `packed`, which is parameter_bytes long.
CUresult pack(const weft::ptx::FunctionInfo& info, void** pointers, void** extra, std::uint8_t* packed) {
    if (pointers != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (info.parameters.empty()) return CUDA_SUCCESS;
    if (pointers != nullptr) {
        for (std::size_t i = 0; i < info.parameters.size(); ++i) {
            if (pointers[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(packed + info.parameters[i].offset_bytes, pointers[i], info.parameters[i].size_bytes);
        }
        return CUDA_SUCCESS;
    }
    if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    std::size_t size = 0;
    WEFT_TRY(extra_buffer(extra, &buffer, &size));
    const weft::ptx::Parameter& last = info.parameters.back();
    if (size < last.offset_bytes + last.size_bytes) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(packed, buffer, std::min<std::size_t>(size, info.parameter_bytes));
    return CUDA_SUCCESS;
}

// As a node of the graph that the stream captures.
CUresult capture_kernel(const CUlaunchConfig& config, Function& function, Stream& stream,
                        std::span<const std::uint8_t> packed) {
    weft::graph::KernelWork work;
    if (function.handle() == 0) HandleTable::instance().insert(&function);
    work.function = function.handle_as<CUfunction>();
    const unsigned grid[] = {config.gridDimX, config.gridDimY, config.gridDimZ};
    const unsigned block[] = {config.blockDimX, config.blockDimY, config.blockDimZ};
    std::copy_n(grid, 3, work.grid);
    std::copy_n(block, 3, work.block);
    work.shared_bytes = config.sharedMemBytes;
    work.parameters.resize(packed.size());
    if (!packed.empty()) std::memcpy(work.parameters.data(), packed.data(), packed.size());
    work.attributes.assign(config.attrs, config.attrs + config.numAttrs);
    weft::graph::FunctionShape shape;
    shape.parameter_bytes = function.info.parameter_bytes;
    for (const weft::ptx::Parameter& parameter : function.info.parameters)
        shape.parameters.push_back({parameter.offset_bytes, parameter.size_bytes});
    return weft::graph::capture_work(stream.capturing, std::move(work), std::move(shape));
}

CUresult submit(const CUlaunchConfig& config, Function& function, const Ref<Stream>& stream,
                const Attributes& attributes, void** pointers, void** extra) {
    std::uint8_t small[512];
    std::vector<std::uint8_t> large;
    std::uint8_t* packed = small;
    if (function.info.parameter_bytes > sizeof small) {
        large.resize(function.info.parameter_bytes);
        packed = large.data();
    } else {
        std::memset(small, 0, function.info.parameter_bytes);
    }
    WEFT_TRY(pack(function.info, pointers, extra, packed));
    if (stream->is_capturing())
        return capture_kernel(config, function, *stream, {packed, function.info.parameter_bytes});
    LaunchRequest request{.config = config, .function = function, .stream = *stream};
    request.cooperative = attributes.cooperative;
    request.parameters = {packed, function.info.parameter_bytes};
    request.grid_id = next_grid_id.fetch_add(1, std::memory_order_relaxed);
    WEFT_TRY(start_launch(request));
    if (attributes.completion) driver().scheduler.record(*stream, *attributes.completion);
    return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, Attributes attributes, void** pointers, void** extra) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, config.hStream, &stream));
    WEFT_TRY(check_captures(*stream));
    Ref<Function> function = find<Function>(handle);
    Ref<Kernel> kernel;
    if (!function) {
        kernel = find<Kernel>(handle);
        if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
        WEFT_TRY(kernel->function(stream->context(), &function));
    }
    if (&function->module->context() != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
    const FunctionSettings& settings = kernel ? kernel->settings : function->settings;
    WEFT_TRY(check_dimensions(config, *function, settings));
    if (attributes.cooperative) {
        const Device& device = *driver().devices[static_cast<std::size_t>(stream->context().device())];
        WEFT_TRY(check_cooperative(config, *function, settings, device));
    }
    return submit(config, *function, stream, attributes, pointers, extra);
}

}  // namespace

namespace weft::swdriver {

CUresult check_dimensions(const CUlaunchConfig& config, const Function& function, const FunctionSettings& settings) {
    const auto zero = [](unsigned x, unsigned y, unsigned z) { return x == 0 || y == 0 || z == 0; };
    if (zero(config.gridDimX, config.gridDimY, config.gridDimZ) ||
        zero(config.blockDimX, config.blockDimY, config.blockDimZ)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (config.gridDimX > kMaxGridX || config.gridDimY > kMaxGridY || config.gridDimZ > kMaxGridZ)
        return CUDA_ERROR_INVALID_VALUE;
    if (config.blockDimX > kMaxBlockX || config.blockDimY > kMaxBlockY || config.blockDimZ > kMaxBlockZ)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned threads = config.blockDimX * config.blockDimY * config.blockDimZ;
    if (threads > static_cast<unsigned>(max_threads(function.info))) return CUDA_ERROR_INVALID_VALUE;
    const auto& required = function.info.required_block;
    if (required[0] != 0 && (config.blockDimX != required[0] || config.blockDimY != std::max(1u, required[1]) ||
                             config.blockDimZ != std::max(1u, required[2]))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (config.sharedMemBytes > static_cast<unsigned>(max_dynamic_shared(function.info, settings)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver

WEFT_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                 unsigned int shared_bytes, CUstream stream, void** pointers, void** extra) {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
    return launch(config, function, {}, pointers, extra);
}

WEFT_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** pointers, void** extra) {
    WEFT_TRY(check_ready());
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Attributes attributes;
    WEFT_TRY(read_attributes(*config, &attributes));
    return launch(*config, function, std::move(attributes), pointers, extra);
}

WEFT_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                            void** pointers) {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
    Attributes attributes;
    attributes.cooperative = true;
    return launch(config, function, std::move(attributes), pointers, nullptr);
}
