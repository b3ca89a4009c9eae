#include "graph/capture.h"

#include <algorithm>
#include <unordered_set>

namespace weft::graph {

std::atomic<int> g_captures{0};

// One capture: from the stream that began it to all that joined it.
class Capture {
  public:
    Capture() { g_captures.fetch_add(1); }
    ~Capture() { g_captures.fetch_sub(1); }

    std::uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    bool owns_graph = true;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const void* thread = nullptr;  // that began it
    StreamCapture* origin = nullptr;
    std::vector<StreamCapture*> streams;
    bool is_invalid = false;

    Node* node(std::uint64_t handle) const {
        const auto found = store().nodes.find(handle);
        return found != store().nodes.end() && found->second->graph == graph.get() ? found->second : nullptr;
    }
};

namespace {

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local char t_identity;  // its address is the thread's

std::vector<Capture*>& captures() {
    static auto& all = *new std::vector<Capture*>;
    return all;
}

void join(StreamCapture& stream, const std::shared_ptr<Capture>& capture, const void* context, bool is_blocking) {
    stream.capture = capture;
    stream.context = context;
    stream.is_blocking = is_blocking;
    stream.next.clear();
    capture->streams.push_back(&stream);
}

void leave(StreamCapture& stream) {
    if (stream.capture != nullptr) std::erase(stream.capture->streams, &stream);
    stream.capture.reset();
    stream.next.clear();
}

// Takes the capture from all its streams.
void finish(const std::shared_ptr<Capture>& capture) {
    while (!capture->streams.empty()) leave(*capture->streams.back());
    std::erase(captures(), capture.get());
    if (capture->owns_graph) store().graphs.erase(capture->graph->handle);
}

CUresult begin(StreamCapture& stream, const void* context, bool is_blocking, CUstreamCaptureMode mode,
               std::shared_ptr<Graph> graph, bool owns_graph, std::vector<std::uint64_t> after) {
    auto capture = std::make_shared<Capture>();
    capture->id = ++store().last;
    capture->graph = std::move(graph);
    capture->owns_graph = owns_graph;
    capture->mode = mode;
    capture->thread = &t_identity;
    capture->origin = &stream;
    captures().push_back(capture.get());
    join(stream, capture, context, is_blocking);
    stream.next = std::move(after);
    return CUDA_SUCCESS;
}

bool is_mode(CUstreamCaptureMode mode) {
    return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

// Everything that comes before these nodes, and themselves.
std::unordered_set<const Node*> with_ancestors(const Capture& capture, const std::vector<std::uint64_t>& handles) {
    std::unordered_set<const Node*> found;
    std::vector<const Node*> open;
    for (const std::uint64_t handle : handles)
        if (const Node* node = capture.node(handle)) open.push_back(node);
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        if (!found.insert(node).second) continue;
        for (const Edge& edge : node->before) open.push_back(edge.from);
    }
    return found;
}

// Work of a stream that joined has to come back to the origin.
bool is_joined(const Capture& capture) {
    const auto reached = with_ancestors(capture, capture.origin->next);
    for (const StreamCapture* stream : capture.streams)
        for (const std::uint64_t handle : stream->next)
            if (const Node* node = capture.node(handle); node != nullptr && !reached.contains(node)) return false;
    return true;
}

CUresult check_active(const StreamCapture& stream) {
    if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    return stream.capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

void add_all(std::vector<std::uint64_t>* to, const std::vector<std::uint64_t>& from) {
    for (const std::uint64_t handle : from)
        if (std::find(to->begin(), to->end(), handle) == to->end()) to->push_back(handle);
}

}  // namespace

CUresult exchange_mode(CUstreamCaptureMode* mode) {
    if (mode == nullptr || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    std::swap(t_mode, *mode);
    return CUDA_SUCCESS;
}

CUresult begin_capture(StreamCapture& stream, const void* context, bool is_blocking, CUstreamCaptureMode mode) {
    const StoreLock lock(store().mutex);
    if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    auto graph = std::make_shared<Graph>();
    graph->handle = store().next(Store::kGraph);
    graph->belongs_to_node = true;  // the program must not destroy it yet
    store().graphs[graph->handle] = graph;
    return begin(stream, context, is_blocking, mode, std::move(graph), true, {});
}

CUresult begin_capture_to(StreamCapture& stream, const void* context, bool is_blocking, CUstreamCaptureMode mode,
                          CUgraph handle, const CUgraphNode* after, std::size_t count) {
    const StoreLock lock(store().mutex);
    const auto found = store().graphs.find(reinterpret_cast<std::uint64_t>(handle));
    if (!is_mode(mode) || found == store().graphs.end() || (count != 0 && after == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    std::vector<std::uint64_t> handles;
    for (std::size_t i = 0; i < count; ++i) {
        const Node* node = store().node(after[i]);
        if (node == nullptr || node->graph != found->second.get()) return CUDA_ERROR_INVALID_VALUE;
        handles.push_back(node->handle);
    }
    return begin(stream, context, is_blocking, mode, found->second, false, std::move(handles));
}

CUresult end_capture(StreamCapture& stream, CUgraph* graph) {
    const StoreLock lock(store().mutex);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream.capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &t_identity)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const CUresult result = capture->is_invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : !is_joined(*capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                   : CUDA_SUCCESS;
    finish(capture);
    if (result != CUDA_SUCCESS) return result;
    if (capture->owns_graph) {
        capture->graph->belongs_to_node = false;
        store().graphs[capture->graph->handle] = capture->graph;
    }
    *graph = reinterpret_cast<CUgraph>(capture->graph->handle);
    return CUDA_SUCCESS;
}

CUstreamCaptureStatus capture_status(StreamCapture& stream) {
    const StoreLock lock(store().mutex);
    if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult capture_info(StreamCapture& stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** after, std::size_t* count) {
    const CUstreamCaptureStatus now = capture_status(stream);
    const StoreLock lock(store().mutex);
    const bool is_active = now == CU_STREAM_CAPTURE_STATUS_ACTIVE && stream.capture != nullptr;
    if (status != nullptr) *status = now;
    if (id != nullptr) *id = is_active ? stream.capture->id : 0;
    if (graph != nullptr) *graph = is_active ? reinterpret_cast<CUgraph>(stream.capture->graph->handle) : nullptr;
    stream.told.clear();
    if (is_active)
        for (const std::uint64_t handle : stream.next) stream.told.push_back(reinterpret_cast<CUgraphNode>(handle));
    if (after != nullptr) *after = stream.told.empty() ? nullptr : stream.told.data();
    if (count != nullptr) *count = stream.told.size();
    return CUDA_SUCCESS;
}

CUresult set_capture_dependencies(StreamCapture& stream, const CUgraphNode* after, std::size_t count, unsigned flags) {
    const StoreLock lock(store().mutex);
    if (const CUresult active = check_active(stream); active != CUDA_SUCCESS) return active;
    if (flags > 1 || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::uint64_t> handles;
    for (std::size_t i = 0; i < count; ++i) {
        const auto handle = reinterpret_cast<std::uint64_t>(after[i]);
        if (stream.capture->node(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
        handles.push_back(handle);
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream.next.clear();
    add_all(&stream.next, handles);
    return CUDA_SUCCESS;
}

CUresult capture_work(StreamCapture& stream, Work work, FunctionShape shape, CUgraphNode* made) {
    const StoreLock lock(store().mutex);
    if (const CUresult active = check_active(stream); active != CUDA_SUCCESS) return active;
    Graph& graph = *stream.capture->graph;
    Node* node = graph.add(std::move(work));
    node->shape = std::move(shape);
    for (const std::uint64_t handle : stream.next)
        if (Node* before = stream.capture->node(handle)) graph.connect(*before, *node, {});
    if (const auto* allocation = std::get_if<AllocateWork>(&node->work))
        graph.memory->addresses.push_back(allocation->parameters.dptr);
    stream.next = {node->handle};
    if (made != nullptr) *made = node->as_handle();
    return CUDA_SUCCESS;
}

CUresult capture_child(StreamCapture& stream, const Plan& plan) {
    ChildWork work;
    {
        const StoreLock lock(store().mutex);
        work.graph = std::make_shared<Graph>();
        work.graph->handle = store().next(Store::kGraph);
        work.graph->belongs_to_node = true;
        store().graphs[work.graph->handle] = work.graph;
        std::vector<Node*> made;
        for (const PlannedNode& planned : plan.nodes) {
            Node* node = work.graph->add(planned.is_enabled ? planned.work : Work(EmptyWork{}));
            for (const std::uint32_t before : planned.after) work.graph->connect(*made[before], *node, {});
            made.push_back(node);
        }
    }
    const std::uint64_t handle = work.graph->handle;
    const CUresult captured = capture_work(stream, std::move(work));
    if (captured == CUDA_SUCCESS) return captured;
    const StoreLock lock(store().mutex);
    store().graphs.erase(handle);
    return captured;
}

CUresult refuse_capture(StreamCapture& stream, CUresult why) {
    const StoreLock lock(store().mutex);
    if (stream.capture == nullptr) return why;
    if (stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream.capture->is_invalid = true;
    return why;
}

CUresult capture_record(StreamCapture& stream, EventCapture& event) {
    const StoreLock lock(store().mutex);
    if (const CUresult active = check_active(stream); active != CUDA_SUCCESS) return active;
    event.capture = stream.capture;
    event.nodes = stream.next;
    event.is_captured = true;
    return CUDA_SUCCESS;
}

void forget_record(EventCapture& event) {
    if (!event.is_captured) return;
    const StoreLock lock(store().mutex);
    event = {};
}

CUresult capture_wait(StreamCapture& stream, const void* context, bool is_blocking, bool is_legacy,
                      EventCapture& event) {
    const StoreLock lock(store().mutex);
    const std::shared_ptr<Capture> of_event = event.capture.lock();
    if (stream.capture == nullptr) {
        // The event's capture has ended: it never was recorded as work.
        if (of_event == nullptr || of_event->streams.empty()) return CUDA_ERROR_CAPTURED_EVENT;
        if (of_event->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (is_legacy) {
            of_event->is_invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        join(stream, of_event, context, is_blocking);
        stream.next = event.nodes;
        return CUDA_SUCCESS;
    }
    if (stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!event.is_captured || of_event == nullptr) {
        stream.capture->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (of_event != stream.capture) {
        stream.capture->is_invalid = of_event->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    add_all(&stream.next, event.nodes);
    return CUDA_SUCCESS;
}

CUresult refuse_event(EventCapture& event) {
    const StoreLock lock(store().mutex);
    if (const auto capture = event.capture.lock()) capture->is_invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult check_unsafe_call() {
    const StoreLock lock(store().mutex);
    if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (Capture* capture : captures()) {
        const bool is_own = capture->thread == &t_identity;
        const bool forbids =
            (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && (is_own || t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) ||
            (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && is_own);
        if (!forbids) continue;
        capture->is_invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult check_legacy_use(const void* context, CUresult why) {
    const StoreLock lock(store().mutex);
    CUresult result = CUDA_SUCCESS;
    const bool is_implicit = why == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    for (Capture* capture : captures()) {
        const bool is_meant =
            std::any_of(capture->streams.begin(), capture->streams.end(), [&](const StreamCapture* stream) {
                return stream->context == context && (stream->is_blocking || !is_implicit);
            });
        if (!is_meant) continue;
        capture->is_invalid = true;
        result = why;
    }
    return result;
}

void drop_stream(StreamCapture& stream) {
    const StoreLock lock(store().mutex);
    const std::shared_ptr<Capture> capture = stream.capture;
    if (capture == nullptr) return;
    capture->is_invalid = true;
    if (capture->origin == &stream) {
        finish(capture);
    } else {
        leave(stream);
    }
}

}  // namespace weft::graph
