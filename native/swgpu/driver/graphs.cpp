// The software GPU as what graphs need of a driver: a launch puts the nodes into the stream in the order of the plan.
#include <cstring>

#include "graph/backend.h"
#include "swgpu/driver/api.h"
#include "swgpu/driver/copy.h"
#include "swgpu/driver/launch.h"
#include "swgpu/driver/module.h"

namespace weft::swdriver {
namespace {

using graph::Exec;
using graph::Work;

// The end of the last launch: the next one, in whatever stream, follows it.
struct ExecutableGraph final : graph::Executable {
    Ref<Event> last;
};

CUresult find_kernel(const graph::KernelWork& work, Ref<Function>* function) {
    WEFT_ENTER(entry);
    return find_function(entry, work.function, function);
}

CUlaunchConfig config_of(const graph::KernelWork& work, CUstream stream) {
    return {work.grid[0],
            work.grid[1],
            work.grid[2],
            work.block[0],
            work.block[1],
            work.block[2],
            work.shared_bytes,
            stream,
            const_cast<CUlaunchAttribute*>(work.attributes.data()),
            static_cast<unsigned>(work.attributes.size())};
}

CUresult launch_kernel(const graph::KernelWork& work, CUstream stream) {
    const CUlaunchConfig config = config_of(work, stream);
    std::size_t size = work.parameters.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(work.parameters.data()),
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    return cuLaunchKernelEx(&config, work.function, nullptr, size != 0 ? extra : nullptr);
}

CUresult launch_fill(const CUDA_MEMSET_NODE_PARAMS& fill, CUstream stream) {
    switch (fill.elementSize) {
        case 1:
            return cuMemsetD2D8Async(fill.dst, fill.pitch, static_cast<unsigned char>(fill.value), fill.width,
                                     fill.height, stream);
        case 2:
            return cuMemsetD2D16Async(fill.dst, fill.pitch, static_cast<unsigned short>(fill.value), fill.width,
                                      fill.height, stream);
        default: return cuMemsetD2D32Async(fill.dst, fill.pitch, fill.value, fill.width, fill.height, stream);
    }
}

CUresult launch_copy(const CUDA_MEMCPY3D& described, Stream& stream) {
    std::unique_ptr<CopyOperation> copy;
    WEFT_TRY(make_copy(described, &copy));
    driver().scheduler.enqueue(stream, std::move(copy), kImmediate);
    return CUDA_SUCCESS;
}

CUresult launch_node(const Work& work, CUstream handle, Stream& stream) {
    if (const auto* kernel = std::get_if<graph::KernelWork>(&work)) return launch_kernel(*kernel, handle);
    if (const auto* copy = std::get_if<graph::CopyWork>(&work)) return launch_copy(copy->copy, stream);
    if (const auto* fill = std::get_if<graph::FillWork>(&work)) return launch_fill(fill->fill, handle);
    if (const auto* host = std::get_if<graph::HostWork>(&work))
        return cuLaunchHostFunc(handle, host->function, host->data);
    if (const auto* event = std::get_if<graph::EventWork>(&work))
        return event->is_record ? cuEventRecord(event->event, handle) : cuStreamWaitEvent(handle, event->event, 0);
    return CUDA_SUCCESS;
}

bool is_filled_range(const CUDA_MEMSET_NODE_PARAMS& fill) {
    if (fill.width > SIZE_MAX / fill.elementSize) return false;
    const Side to{.address = fill.dst, .row_pitch = fill.pitch, .device = true};
    return covers(to, Box{.width = fill.width * fill.elementSize, .height = fill.height}, true);
}

class SoftwareBackend final : public graph::Backend {
  public:
    CUresult describe(graph::KernelWork* work, graph::FunctionShape* shape) override {
        if (work->function == nullptr) work->function = reinterpret_cast<CUfunction>(work->kernel);
        Ref<Function> function;
        WEFT_TRY(find_kernel(*work, &function));
        shape->parameter_bytes = function->info.parameter_bytes;
        for (const ptx::Parameter& parameter : function->info.parameters)
            shape->parameters.push_back({parameter.offset_bytes, parameter.size_bytes});
        return CUDA_SUCCESS;
    }
    CUresult check(const Work& work) override {
        if (const auto* kernel = std::get_if<graph::KernelWork>(&work)) {
            Ref<Function> function;
            WEFT_TRY(find_kernel(*kernel, &function));
            return check_dimensions(config_of(*kernel, nullptr), *function, function->settings);
        }
        if (const auto* copy = std::get_if<graph::CopyWork>(&work)) {
            std::unique_ptr<CopyOperation> made;
            return make_copy(copy->copy, &made);
        }
        if (const auto* fill = std::get_if<graph::FillWork>(&work))
            return is_filled_range(fill->fill) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        if (const auto* event = std::get_if<graph::EventWork>(&work))
            return find<Event>(event->event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        if (const auto* given = std::get_if<graph::FreeWork>(&work))
            return driver().space.accessible(given->address, 1, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    }
    CUresult allocate(CUdevice device, std::size_t bytes, CUdeviceptr* address) override {
        return find_device(device) != nullptr ? cuMemAlloc_v2(address, bytes) : CUDA_ERROR_INVALID_VALUE;
    }
    void release(CUdeviceptr address) override { (void)cuMemFree_v2(address); }

    CUresult instantiate(Exec& exec) override {
        WEFT_ENTER(entry);
        auto executable = std::make_unique<ExecutableGraph>();
        executable->last = Ref<Event>(new Event(entry.context, CU_EVENT_DISABLE_TIMING));
        exec.executable = std::move(executable);
        return CUDA_SUCCESS;
    }
    CUresult update(Exec&, std::uint32_t, bool) override { return CUDA_SUCCESS; }
    CUresult launch(Exec& exec, CUstream handle) override {
        WEFT_ENTER(entry);
        Ref<Stream> stream;
        WEFT_TRY(resolve_stream(entry, handle, &stream));
        if (stream->is_capturing()) return graph::capture_child(stream->capturing, exec.plan);
        auto& executable = static_cast<ExecutableGraph&>(*exec.executable);
        Scheduler& scheduler = driver().scheduler;
        scheduler.wait_event(*stream, *executable.last);
        for (const graph::PlannedNode& node : exec.plan.nodes)
            if (node.is_enabled) WEFT_TRY(launch_node(node.work, handle, *stream));
        scheduler.record(*stream, *executable.last);
        return CUDA_SUCCESS;
    }
    CUresult upload(Exec&, CUstream handle) override {
        WEFT_ENTER(entry);
        Ref<Stream> stream;
        return resolve_stream(entry, handle, &stream);
    }
};

}  // namespace
}  // namespace weft::swdriver

weft::graph::Backend& weft::graph::backend() {
    static weft::swdriver::SoftwareBackend& only = *new weft::swdriver::SoftwareBackend;
    return only;
}
