// The shim as what graphs need of a driver: checks, and executables as frames.
#include "shim/graphs.h"

#include <cstring>

#include "graph/backend.h"
#include "shim/copy_box.h"
#include "shim/device_range.h"
#include "shim/graph_frames.h"
#include "shim/launch.h"
#include "shim/library.h"
#include "shim/submit.h"

namespace weft::shim {
namespace {

using graph::Exec;
using graph::Work;

constexpr std::size_t kEdgesPerFrame = 4096;
constexpr std::size_t kOldEnds = 256;

ExecutableGraph& executable_of(Exec& exec) { return static_cast<ExecutableGraph&>(*exec.executable); }

CUresult check_kernel(const graph::KernelWork& work) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Function* function;
    if (const CUresult found = resolve_function(work.function, *context, &function); found != CUDA_SUCCESS)
        return found;
    const CUlaunchConfig config{work.grid[0],  work.grid[1],      work.grid[2], work.block[0], work.block[1],
                                work.block[2], work.shared_bytes, nullptr,      nullptr,       0};
    return check_launch_shape(*function, *function->module->context->device, config);
}

bool is_filled_range(const CUDA_MEMSET_NODE_PARAMS& fill) {
    std::uint64_t rows = 0, bytes = 0;
    if (__builtin_mul_overflow(fill.height - 1, fill.pitch, &rows) ||
        __builtin_mul_overflow(fill.width, static_cast<std::size_t>(fill.elementSize), &bytes) ||
        __builtin_add_overflow(rows, bytes, &bytes))
        return false;
    return is_device_range(fill.dst, bytes);
}

// The one context whose objects the nodes use; that of the calling thread if they use none.
CUresult find_context(const graph::Plan& plan, Context** context) {
    if (const CUresult result = usable_context(context); result != CUDA_SUCCESS) return result;
    Context* found = nullptr;
    for (const graph::PlannedNode& node : plan.nodes) {
        Context* of = nullptr;
        if (const auto* kernel = std::get_if<graph::KernelWork>(&node.work)) {
            Function* function;
            if (const CUresult result = resolve_function(kernel->function, **context, &function);
                result != CUDA_SUCCESS)
                return result;
            of = function->module->context;
        } else if (const auto* event = std::get_if<graph::EventWork>(&node.work)) {
            const Event* known = Runtime::get()->events.find(event->event);
            if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
            of = known->context;
        }
        if (of != nullptr && found != nullptr && of != found) return CUDA_ERROR_NOT_SUPPORTED;
        if (of != nullptr) found = of;
    }
    if (found != nullptr) *context = found;
    return CUDA_SUCCESS;
}

CUresult send_node(const ExecutableGraph& executable, std::uint32_t index, const std::vector<std::byte>& inner) {
    if (inner.empty()) return CUDA_SUCCESS;
    return Runtime::get()->session().send<wire::GraphNode>(
        executable.context_number, inner.size(), [&](auto& frame, std::byte* tail) {
            frame.graph = executable.number;
            frame.node = index;
            frame.size_bytes = static_cast<std::uint32_t>(inner.size());
            std::memcpy(tail, inner.data(), inner.size());
        });
}

CUresult send_edges(const ExecutableGraph& executable, const std::vector<std::uint32_t>& pairs) {
    for (std::size_t at = 0; at < pairs.size(); at += 2 * kEdgesPerFrame) {
        const std::size_t count = std::min(2 * kEdgesPerFrame, pairs.size() - at);
        const CUresult sent = Runtime::get()->session().send<wire::GraphEdges>(
            executable.context_number, count * sizeof(std::uint32_t), [&](auto& frame, std::byte* tail) {
                frame.graph = executable.number;
                frame.count = static_cast<std::uint32_t>(count / 2);
                std::memcpy(tail, pairs.data() + at, count * sizeof(std::uint32_t));
            });
        if (sent != CUDA_SUCCESS) return sent;
    }
    return CUDA_SUCCESS;
}

CUresult send_nodes(Exec& exec, ExecutableGraph& executable) {
    std::vector<std::uint32_t> pairs;
    std::vector<std::byte> inner;
    for (std::uint32_t i = 0; i < exec.plan.nodes.size(); ++i) {
        const graph::PlannedNode& node = exec.plan.nodes[i];
        if (const CUresult made = encode_work(node.work, *executable.context, &executable.ends[i], &inner);
            made != CUDA_SUCCESS)
            return made;
        if (const CUresult sent = send_node(executable, i, inner); sent != CUDA_SUCCESS) return sent;
        for (const std::uint32_t before : node.after) pairs.insert(pairs.end(), {before, i});
        const auto* event = std::get_if<graph::EventWork>(&node.work);
        if (event != nullptr && event->is_record) executable.records.push_back(i);
    }
    return send_edges(executable, pairs);
}

// How often the executor is going to ask for something during a launch.
void expect_host_ends(const Exec& exec, ExecutableGraph& executable) {
    Runtime& runtime = *Runtime::get();
    for (std::size_t i = 0; i < executable.ends.size(); ++i) {
        const ExecutableGraph::HostEnd& end = executable.ends[i];
        if ((end.call | end.pull | end.transfer) == 0 || !exec.plan.nodes[i].is_enabled) continue;
        if (end.call != 0) {
            runtime.callbacks().expect();
        } else {
            runtime.session().expect_inbound();
        }
        if (end.transfer != 0) runtime.session().transfers().expect(end.transfer);
    }
}

// Ends that no launch uses any more are given back.
void drop_old_ends(ExecutableGraph& executable) {
    Runtime& runtime = *Runtime::get();
    if (executable.old_ends.size() < kOldEnds) return;
    if (runtime.progress().done() < executable.last_work) (void)runtime.wait_for_everything();
    for (const ExecutableGraph::HostEnd& end : executable.old_ends) drop_end(end);
    executable.old_ends.clear();
}

class ShimBackend final : public graph::Backend {
  public:
    CUresult describe(graph::KernelWork* work, graph::FunctionShape* shape) override;
    CUresult check(const Work& work) override;
    CUresult allocate(CUdevice device, std::size_t bytes, CUdeviceptr* address) override;
    void release(CUdeviceptr address) override;
    CUresult instantiate(Exec& exec) override;
    CUresult update(Exec& exec, std::uint32_t index, bool work_changed) override;
    CUresult launch(Exec& exec, CUstream stream) override;
    CUresult upload(Exec& exec, CUstream stream) override;
};

CUresult ShimBackend::describe(graph::KernelWork* work, graph::FunctionShape* shape) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (work->function == nullptr) work->function = reinterpret_cast<CUfunction>(work->kernel);
    Function* function;
    if (const CUresult found = resolve_function(work->function, *context, &function); found != CUDA_SUCCESS)
        return found;
    shape->parameter_bytes = function->parameter_bytes;
    for (const wire::ParameterInfo& parameter : function->info->parameters)
        shape->parameters.push_back({parameter.offset, parameter.size_bytes});
    return CUDA_SUCCESS;
}

CUresult ShimBackend::check(const Work& work) {
    if (const auto* kernel = std::get_if<graph::KernelWork>(&work)) return check_kernel(*kernel);
    if (const auto* copy = std::get_if<graph::CopyWork>(&work)) {
        CopySides sides;
        return api::read_sides(copy->copy, &sides);
    }
    if (const auto* fill = std::get_if<graph::FillWork>(&work))
        return is_filled_range(fill->fill) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (const auto* event = std::get_if<graph::EventWork>(&work))
        return Runtime::get()->events.find(event->event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (const auto* given = std::get_if<graph::FreeWork>(&work))
        return is_device_range(given->address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult ShimBackend::allocate(CUdevice ordinal, std::size_t bytes, CUdeviceptr* address) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Device* device = Runtime::get()->device(ordinal);
    return device != nullptr ? device->memory->allocate(bytes, context->number, address) : CUDA_ERROR_INVALID_VALUE;
}

// The program may have freed it already.
void ShimBackend::release(CUdeviceptr address) {
    Runtime* runtime = Runtime::get();
    if (runtime == nullptr) return;
    if (Device* device = runtime->device_of(address)) (void)device->memory->free(address);
}

CUresult ShimBackend::instantiate(Exec& exec) {
    Context* context;
    if (const CUresult found = find_context(exec.plan, &context); found != CUDA_SUCCESS) return found;
    auto executable = std::make_unique<ExecutableGraph>();
    executable->number = Runtime::get()->next_number();
    executable->context = context;
    executable->context_number = context->number;
    executable->ends.resize(exec.plan.nodes.size());
    Session& session = Runtime::get()->session();
    const CUresult begun = session.send<wire::GraphCreate>(context->number, 0, [&](auto& frame, std::byte*) {
        frame.graph = executable->number;
        frame.node_count = static_cast<std::uint32_t>(exec.plan.nodes.size());
    });
    if (begun != CUDA_SUCCESS) return begun;
    if (const CUresult sent = send_nodes(exec, *executable); sent != CUDA_SUCCESS) return sent;
    const Reply reply = session.call<wire::GraphInstantiate>(
        context->number, 0, [&](auto& frame, std::byte*) { frame.graph = executable->number; });
    if (reply.status != CUDA_SUCCESS) return settle(*context, reply.status);
    exec.executable = std::move(executable);
    return CUDA_SUCCESS;
}

CUresult ShimBackend::update(Exec& exec, std::uint32_t index, bool work_changed) {
    ExecutableGraph& executable = executable_of(exec);
    const graph::PlannedNode& node = exec.plan.nodes[index];
    std::vector<std::byte> inner;
    ExecutableGraph::HostEnd end;
    if (work_changed) {
        if (const CUresult made = encode_work(node.work, *executable.context, &end, &inner); made != CUDA_SUCCESS)
            return made;
        drop_old_ends(executable);
        const ExecutableGraph::HostEnd old = std::exchange(executable.ends[index], end);
        if ((old.call | old.pull | old.transfer) != 0) executable.old_ends.push_back(old);
    }
    // In the stream of the last launch, whose credit and order hold for the update, too.
    Stream* stream = Runtime::get()->streams.find(executable.stream);
    if (stream == nullptr || stream->context != executable.context) stream = &executable.context->legacy;
    return submit<wire::GraphUpdate>(*stream, inner.size(), [&](auto& frame, std::byte* tail) {
        frame.graph = executable.number;
        frame.node = index;
        frame.size_bytes = static_cast<std::uint32_t>(inner.size());
        frame.is_enabled = node.is_enabled ? 1 : 0;
        if (!inner.empty()) std::memcpy(tail, inner.data(), inner.size());
    });
}

CUresult ShimBackend::launch(Exec& exec, CUstream handle) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Stream* stream;
    if (const CUresult result = find_stream(*context, handle, &stream); result != CUDA_SUCCESS) return result;
    if (is_capturing(*stream)) return capture_launch(*stream, exec.plan);
    ExecutableGraph& executable = executable_of(exec);
    if (stream->context != executable.context || stream->context->number != executable.context_number)
        return CUDA_ERROR_INVALID_CONTEXT;
    Runtime& runtime = *Runtime::get();
    if (runtime.unified().is_used()) {
        if (const CUresult ready = runtime.unified().before_work(*stream); ready != CUDA_SUCCESS) return ready;
    }
    expect_host_ends(exec, executable);
    const std::size_t records = executable.records.size();
    const CUresult sent =
        submit<wire::GraphLaunch>(*stream, records * sizeof(std::uint32_t), [&](auto& frame, std::byte* tail) {
            frame.graph = executable.number;
            frame.record_count = static_cast<std::uint32_t>(records);
            for (const std::uint32_t node : executable.records) {
                Event* event = runtime.events.find(std::get_if<graph::EventWork>(&exec.plan.nodes[node].work)->event);
                std::uint32_t record = 0;
                if (event != nullptr) {
                    record = event->record.fetch_add(1) + 1;
                    event->stream = stream->number;
                    event->work = runtime.progress().submitted() + 1;
                }
                std::memcpy(tail, &record, sizeof record);
                tail += sizeof record;
            }
        });
    executable.stream = stream->handle;
    executable.last_work = stream->last_work.load();
    for (const ExecutableGraph::HostEnd& end : executable.ends)
        if (end.transfer != 0) runtime.session().transfers().belongs_to(end.transfer, executable.last_work);
    return sent;
}

// Its nodes are on the other side since it was instantiated.
CUresult ShimBackend::upload(Exec&, CUstream handle) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Stream* stream;
    return find_stream(*context, handle, &stream);
}

}  // namespace

// Launches of the graph may be under way: what they use of this process is given back when they are complete.
ExecutableGraph::~ExecutableGraph() {
    Runtime* runtime = Runtime::get();
    if (runtime == nullptr) return;
    if (runtime->context_by_number(context_number) != nullptr)
        (void)runtime->session().send<wire::GraphDestroy>(context_number, 0,
                                                          [&](auto& frame, std::byte*) { frame.graph = number; });
    std::vector<HostEnd> gone = std::move(old_ends);
    for (const HostEnd& end : ends)
        if ((end.call | end.pull | end.transfer) != 0) gone.push_back(end);
    if (gone.empty()) return;
    runtime->when_done(last_work, [gone = std::move(gone)] {
        for (const HostEnd& end : gone) drop_end(end);
    });
}

}  // namespace weft::shim

weft::graph::Backend& weft::graph::backend() {
    static weft::shim::ShimBackend& only = *new weft::shim::ShimBackend;
    return only;
}
