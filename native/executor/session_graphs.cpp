// Graphs of the client: taking their nodes in, launching them, changing nodes. See session.h, graphs.h.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "executor/launch_attributes.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

// What a node may be: frames of a stream that carry nothing with them and wait for no reply.
bool is_node_opcode(std::uint16_t opcode) {
    using O = wire::Opcode;
    switch (static_cast<O>(opcode)) {
        case O::Launch:
        case O::MemcpyDtoDAsync:
        case O::MemsetD2D8Async:
        case O::MemsetD2D16Async:
        case O::MemsetD2D32Async:
        case O::CopyBoxD2d:
        case O::CopyBoxPull:
        case O::CopyBoxD2h:
        case O::CopyBoxSegment:
        case O::CopyH2dSegment:
        case O::CopyD2hSegment:
        case O::CopyH2dPull:
        case O::CopyD2h:
        case O::EventRecord:
        case O::StreamWaitEvent:
        case O::HostFunction: return true;
        default: return false;
    }
}

template <typename Frame>
Frame read_fields(std::span<const std::byte> frame) {
    Frame fields;
    std::memcpy(&fields, frame.data() + sizeof(wire::FrameHeader), sizeof fields);
    return fields;
}

template <typename Frame>
CUDA_MEMSET_NODE_PARAMS read_fill(std::span<const std::byte> frame, unsigned value, unsigned unit) {
    const auto fields = read_fields<Frame>(frame);
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = fields.dstDevice;
    fill.pitch = fields.dstPitch;
    fill.value = value;
    fill.elementSize = unit;
    fill.width = fields.Width;
    fill.height = fields.Height;
    return fill;
}

CUDA_MEMCPY3D read_copy(std::span<const std::byte> frame) {
    const auto fields = read_fields<wire::MemcpyDtoDAsync>(frame);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = fields.srcDevice;
    copy.dstDevice = fields.dstDevice;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = fields.ByteCount;
    copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
    return copy;
}

// The event that an inner frame touches.
std::uint32_t event_of(std::span<const std::byte> frame) {
    switch (wire::header_of(frame).opcode) {
        case wire::EventRecord::kOpcode: return read_fields<wire::EventRecord>(frame).event;
        case wire::StreamWaitEvent::kOpcode: return read_fields<wire::StreamWaitEvent>(frame).event;
        default: return kNoEvent;
    }
}

// Adds the event to what the graph's launches are ordered by.
void add_event(GraphState& graph, std::uint32_t event) {
    if (event == kNoEvent) return;
    std::vector<std::uint32_t> list;
    if (graph.events != nullptr) list = *graph.events;
    if (std::find(list.begin(), list.end(), event) != list.end()) return;
    list.push_back(event);
    graph.events = std::make_shared<const std::vector<std::uint32_t>>(std::move(list));
}

}  // namespace

// --------------------------------------------------------------------------------------------------------- taking in

GraphState* Session::find_graph(const Arrival& arrival, std::uint32_t number) {
    const auto found = graphs_.find(number);
    return found != graphs_.end() && found->second->context == arrival.context ? found->second.get() : nullptr;
}

bool Session::take_graph_bytes(GraphState& graph, std::size_t bytes) {
    if (bytes > kMaxGraphBytes - graph_bytes_) return false;
    graph_bytes_ += bytes;
    graph.bytes += bytes;
    return true;
}

Outcome Session::on_graph_create(Arrival& arrival) {
    const auto create = fields_of<wire::GraphCreate>(arrival);
    if (graphs_.contains(create.graph) || create.graph == kNoEvent) return bad_frame(arrival, "graph number in use");
    if (graphs_.size() >= kMaxGraphs || create.node_count > kMaxGraphNodes - graph_nodes_)
        return bad_frame(arrival, "too many graphs, or nodes in them");
    auto graph = std::make_shared<GraphState>(driver_);
    graph->context = arrival.context;
    graph->number = create.graph;
    graph->nodes.resize(create.node_count);
    graph_nodes_ += create.node_count;
    graphs_[create.graph] = std::move(graph);
    return Outcome::submitted;
}

std::string_view Session::check_inner(const Arrival& arrival, std::span<const std::byte> inner) const {
    if (inner.size() < sizeof(wire::FrameHeader) || reinterpret_cast<std::uintptr_t>(inner.data()) % 8 != 0)
        return "a node without a frame";
    const wire::FrameHeader header = wire::header_of(inner);
    const wire::FrameInfo* info = wire::find_frame_info(header.opcode);
    if (info == nullptr || !is_node_opcode(header.opcode)) return "a node that cannot be one";
    if (!wire::check_frame(inner, *info)) return "a node's frame is malformed";
    if (header.flags != 0 || header.context != arrival.header.context) return "a node of another context";
    return {};
}

Outcome Session::on_graph_node(Arrival& arrival) {
    const auto fields = fields_of<wire::GraphNode>(arrival);
    const auto tail = tail_of<wire::GraphNode>(arrival);
    GraphState* graph = find_graph(arrival, fields.graph);
    if (graph == nullptr || graph->is_instantiated || fields.node >= graph->nodes.size())
        return bad_frame(arrival, "no such node");
    if (fields.size_bytes > tail.size()) return bad_frame(arrival, "a node's frame is cut off");
    // A copy of our own, aligned as frames are.
    std::vector<std::byte> inner(tail.begin(), tail.begin() + fields.size_bytes);
    if (const std::string_view wrong = check_inner(arrival, inner); !wrong.empty()) return bad_frame(arrival, wrong);
    if (!take_graph_bytes(*graph, inner.size())) return bad_frame(arrival, "too much in graphs");
    add_event(*graph, event_of(inner));
    graph->nodes[fields.node].frame = std::move(inner);
    return Outcome::submitted;
}

Outcome Session::on_graph_edges(Arrival& arrival) {
    const auto fields = fields_of<wire::GraphEdges>(arrival);
    const auto tail = tail_of<wire::GraphEdges>(arrival);
    GraphState* graph = find_graph(arrival, fields.graph);
    if (graph == nullptr || graph->is_instantiated) return bad_frame(arrival, "no such graph");
    constexpr std::size_t kPairBytes = 2 * sizeof(std::uint32_t);
    if (fields.count > tail.size() / kPairBytes) return bad_frame(arrival, "edges are cut off");
    if (!take_graph_bytes(*graph, fields.count * kPairBytes)) return bad_frame(arrival, "too much in graphs");
    for (std::uint32_t i = 0; i < fields.count; ++i) {
        std::uint32_t pair[2];
        std::memcpy(pair, tail.data() + i * kPairBytes, kPairBytes);
        // Numbered in an order that keeps the edges: so there are no circles.
        if (pair[0] >= pair[1] || pair[1] >= graph->nodes.size()) return bad_frame(arrival, "an impossible edge");
        graph->nodes[pair[1]].after.push_back(pair[0]);
    }
    return Outcome::submitted;
}

// ------------------------------------------------------------------------------------------------------ instantiating

// The frame in the driver's terms.
CUresult Session::describe_work(ContextState& context, std::span<const std::byte> frame, GraphWork* work) {
    work->kind = GraphWork::Kind::by_frame;
    switch (wire::header_of(frame).opcode) {
        case wire::MemcpyDtoDAsync::kOpcode:
            work->kind = GraphWork::Kind::copy;
            work->copy = read_copy(frame);
            return CUDA_SUCCESS;
        case wire::MemsetD2D8Async::kOpcode:
            work->kind = GraphWork::Kind::fill;
            work->fill = read_fill<wire::MemsetD2D8Async>(frame, read_fields<wire::MemsetD2D8Async>(frame).uc, 1);
            return CUDA_SUCCESS;
        case wire::MemsetD2D16Async::kOpcode:
            work->kind = GraphWork::Kind::fill;
            work->fill = read_fill<wire::MemsetD2D16Async>(frame, read_fields<wire::MemsetD2D16Async>(frame).us, 2);
            return CUDA_SUCCESS;
        case wire::MemsetD2D32Async::kOpcode:
            work->kind = GraphWork::Kind::fill;
            work->fill = read_fill<wire::MemsetD2D32Async>(frame, read_fields<wire::MemsetD2D32Async>(frame).ui, 4);
            return CUDA_SUCCESS;
        case wire::Launch::kOpcode: break;
        default: return CUDA_SUCCESS;
    }
    const auto launch = read_fields<wire::Launch>(frame);
    const auto tail = frame.subspan(sizeof(wire::FrameHeader) + sizeof(wire::Launch));
    const std::size_t attribute_bytes = launch.attribute_count * sizeof(CUlaunchAttribute);
    if (launch.attribute_count > kMaxLaunchAttributes || attribute_bytes > tail.size() ||
        launch.parameter_bytes > tail.size() - attribute_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const ModuleState* module = modules_.find(launch.module);
    if (module == nullptr || module->context != &context || launch.function >= module->functions.size())
        return CUDA_ERROR_INVALID_HANDLE;
    const FunctionState& function = module->functions[launch.function];
    if (launch.parameter_bytes < function.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    work->attributes.resize(launch.attribute_count);
    if (attribute_bytes != 0) std::memcpy(work->attributes.data(), tail.data(), attribute_bytes);
    for (const CUlaunchAttribute& attribute : work->attributes)
        if (!is_allowed_attribute(attribute.id)) return CUDA_ERROR_NOT_SUPPORTED;
    const std::byte* parameters = tail.data() + attribute_bytes;
    work->parameters.assign(parameters, parameters + function.parameter_bytes);
    work->kind = GraphWork::Kind::kernel;
    work->kernel.func = function.handle;
    work->kernel.gridDimX = launch.grid_x;
    work->kernel.gridDimY = launch.grid_y;
    work->kernel.gridDimZ = launch.grid_z;
    work->kernel.blockDimX = launch.block_x;
    work->kernel.blockDimY = launch.block_y;
    work->kernel.blockDimZ = launch.block_z;
    work->kernel.sharedMemBytes = launch.shared_bytes;
    return CUDA_SUCCESS;
}

void Session::resolve_nodes(GraphState& graph) {
    graph.works.resize(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size() && graph.failure == CUDA_SUCCESS; ++i) {
        GraphNodeState& node = graph.nodes[i];
        if (!node.frame.empty()) graph.failure = describe_work(*graph.context, node.frame, &graph.works[i]);
        node.kind = graph.works[i].kind;
    }
}

Outcome Session::on_graph_instantiate(Arrival& arrival) {
    const auto fields = fields_of<wire::GraphInstantiate>(arrival);
    GraphState* found = find_graph(arrival, fields.graph);
    if (found == nullptr || found->is_instantiated) return bad_frame(arrival, "no such graph");
    found->is_instantiated = true;
    resolve_nodes(*found);
    const std::shared_ptr<GraphState> graph = graphs_[fields.graph];
    const auto context = contexts_[arrival.header.context];
    helper_->submit(
        [this, graph, context] {
            if (graph->failure == CUDA_SUCCESS) graph->failure = driver_.cuCtxSetCurrent(context->handle);
            if (graph->failure == CUDA_SUCCESS) graph->failure = graph->build();
        },
        [this, graph, header = arrival.header] {
            graph->works.clear();
            graph->is_ready = graph->failure == CUDA_SUCCESS;
            answer(header, graph->failure);
        });
    return Outcome::submitted;
}

Outcome Session::on_graph_destroy(Arrival& arrival) {
    const auto fields = fields_of<wire::GraphDestroy>(arrival);
    GraphState* graph = find_graph(arrival, fields.graph);
    if (graph == nullptr) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    set_current(*arrival.context);
    graph_nodes_ -= graph->nodes.size();
    graph_bytes_ -= graph->bytes;
    graphs_.erase(fields.graph);
    return Outcome::submitted;
}

// The context ends, and is current.
void Session::drop_graphs(ContextState& context) {
    std::erase_if(graphs_, [&](const auto& entry) {
        if (entry.second->context != &context) return false;
        graph_nodes_ -= entry.second->nodes.size();
        graph_bytes_ -= entry.second->bytes;
        return true;
    });
}

// ---------------------------------------------------------------------------------------------------------- launching

// Launches of a graph follow each other and its updates, in whatever stream they are; and they are ordered by all
// events that the graph's nodes touch.
FrameOrder Session::graph_order(const Arrival& arrival, When when) {
    const bool is_launch = when == When::graph_launch;
    const std::uint32_t number =
        is_launch ? fields_of<wire::GraphLaunch>(arrival).graph : fields_of<wire::GraphUpdate>(arrival).graph;
    GraphState* graph = find_graph(arrival, number);
    FrameOrder order{is_launch ? OrderKind::event_record : OrderKind::event_wait, {number, kNoEvent}, nullptr};
    if (graph == nullptr) return order;
    if (!is_launch) {
        const auto fields = fields_of<wire::GraphUpdate>(arrival);
        const auto tail = tail_of<wire::GraphUpdate>(arrival);
        const auto inner = tail.first(std::min<std::size_t>(fields.size_bytes, tail.size()));
        if (inner.size() >= sizeof(wire::FrameHeader) + sizeof(wire::EventRecord)) add_event(*graph, event_of(inner));
    }
    if (is_launch) order.more = graph->events;
    return order;
}

Outcome Session::on_graph_launch(Arrival& arrival) {
    const auto launch = fields_of<wire::GraphLaunch>(arrival);
    const auto tail = tail_of<wire::GraphLaunch>(arrival);
    if (launch.record_count > tail.size() / sizeof(std::uint32_t)) return bad_frame(arrival, "records are cut off");
    GraphState* graph = find_graph(arrival, launch.graph);
    if (graph == nullptr || !graph->is_ready) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    std::size_t record = 0;
    for (GraphNodeState& node : graph->nodes) {
        if (node.frame.empty() || wire::header_of(node.frame).opcode != wire::EventRecord::kOpcode) continue;
        if (record == launch.record_count) return bad_frame(arrival, "records are missing");
        std::memcpy(&node.record, tail.data() + record++ * sizeof(std::uint32_t), sizeof node.record);
    }
    StreamState& stream = *arrival.stream;
    set_current(stream.context);
    ++counters_.launches;
    if (graph->last != nullptr && graph->last_stream != stream.number) {
        const CUresult waits = driver_.cuStreamWaitEvent(stream.handle, graph->last->get(), 0);
        if (waits != CUDA_SUCCESS) {
            refuse(arrival, waits);
            return Outcome::submitted;
        }
    }
    stream.graph_run = std::make_unique<GraphRun>(GraphRun{graphs_[launch.graph], 0, false});
    return advance_graph(stream) ? Outcome::submitted : Outcome::started;
}

bool Session::advance_graph(StreamState& stream) {
    GraphRun& run = *stream.graph_run;
    run.waits_for_room = false;
    while (run.next < run.graph->steps.size()) {
        if (stream.in_flight.is_full()) {
            run.waits_for_room = true;
            look_at(stream);
            return false;
        }
        if (!run_graph_step(stream, run)) return false;
    }
    end_graph_launch(stream, run);
    return true;
}

// False: the step goes on, and holds the stream.
bool Session::run_graph_step(StreamState& stream, GraphRun& run) {
    const GraphStep& step = run.graph->steps[run.next++];
    if (step.exec == nullptr) return run_graph_node(stream, run, step.node) == Outcome::submitted;
    set_current(stream.context);
    const CUresult result = driver_.cuGraphLaunch(step.exec, stream.handle);
    if (result == CUDA_SUCCESS) {
        submitted(stream);
    } else {
        report(stream.context, result, wire::GraphLaunch::kOpcode);
    }
    return true;
}

Outcome Session::run_graph_node(StreamState& stream, GraphRun& run, std::uint32_t index) {
    GraphNodeState& node = run.graph->nodes[index];
    if (!node.is_enabled || node.frame.empty()) return Outcome::submitted;
    const std::uint16_t opcode = wire::header_of(node.frame).opcode;
    const auto at = static_cast<std::size_t>(wire::find_frame_info(opcode)->stream_offset);
    std::memcpy(node.frame.data() + at, &stream.number, sizeof stream.number);
    if (opcode == wire::EventRecord::kOpcode)
        std::memcpy(node.frame.data() + sizeof(wire::FrameHeader) + offsetof(wire::EventRecord, record), &node.record,
                    sizeof node.record);
    Arrival arrival;
    arrival.frame = node.frame;
    arrival.header = wire::header_of(node.frame);
    arrival.stream = &stream;
    arrival.context = &stream.context;
    // Host memory of a graph may have been freed since: an error of the launch, not of the client's.
    const auto is_gone = [&](const auto& copy) {
        return segment_bytes(copy.segment, copy.offset, copy.size_bytes).data() == nullptr;
    };
    if ((opcode == wire::CopyH2dSegment::kOpcode && is_gone(fields_of<wire::CopyH2dSegment>(arrival))) ||
        (opcode == wire::CopyD2hSegment::kOpcode && is_gone(fields_of<wire::CopyD2hSegment>(arrival))) ||
        (opcode == wire::CopyBoxSegment::kOpcode &&
         !segments_.contains(fields_of<wire::CopyBoxSegment>(arrival).segment))) {
        refuse(arrival, CUDA_ERROR_INVALID_VALUE);
        return Outcome::submitted;
    }
    return (this->*entry_of(opcode)->run)(arrival);
}

// A graph of several steps is ordered against its next launch by us; one of the driver's by the driver.
void Session::end_graph_launch(StreamState& stream, GraphRun& run) {
    GraphState& graph = *run.graph;
    if (graph.steps.size() != 1 || graph.steps[0].exec == nullptr) {
        set_current(stream.context);
        CUresult error = CUDA_SUCCESS;
        graph.last = record_marker(stream.context.events, stream.handle, &error);
        graph.last_stream = stream.number;
    }
    stream.graph_run.reset();
}

// ----------------------------------------------------------------------------------------------------------- changing

Outcome Session::on_graph_update(Arrival& arrival) {
    const auto fields = fields_of<wire::GraphUpdate>(arrival);
    const auto tail = tail_of<wire::GraphUpdate>(arrival);
    if (fields.size_bytes > tail.size() || fields.is_enabled > 1) return bad_frame(arrival, "a malformed update");
    GraphState* graph = find_graph(arrival, fields.graph);
    if (graph == nullptr || !graph->is_ready) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    if (fields.node >= graph->nodes.size()) return bad_frame(arrival, "no such node");
    GraphNodeState& node = graph->nodes[fields.node];
    std::vector<std::byte> inner(tail.begin(), tail.begin() + fields.size_bytes);
    GraphWork work;
    CUresult result = CUDA_SUCCESS;
    if (!inner.empty()) {
        if (const std::string_view wrong = check_inner(arrival, inner); !wrong.empty())
            return bad_frame(arrival, wrong);
        result = describe_work(*arrival.context, inner, &work);
        if (result == CUDA_SUCCESS && node.frame.empty()) result = CUDA_ERROR_INVALID_VALUE;
    }
    set_current(*arrival.context);
    if (result == CUDA_SUCCESS && !inner.empty() && node.driver_exec != nullptr)
        result = work.kind == node.kind ? update_driver_node(driver_, node, work, arrival.context->handle)
                                        : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && node.driver_exec != nullptr && node.is_enabled != (fields.is_enabled != 0))
        result = driver_.cuGraphNodeSetEnabled(node.driver_exec, node.driver_node, fields.is_enabled);
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    node.is_enabled = fields.is_enabled != 0;
    if (inner.empty()) return Outcome::submitted;
    const std::size_t before = node.frame.size();
    if (inner.size() > before && !take_graph_bytes(*graph, inner.size() - before))
        return bad_frame(arrival, "too much in graphs");
    node.frame = std::move(inner);
    return Outcome::submitted;
}

}  // namespace weft::executor
