// Stream capture: calls on a capturing stream become nodes of a graph instead of work. Keeps which stream captures
// what, and the rules that end a capture. Pure but for the graphs it makes; guarded by the store's lock. Design note:
// docs/design/graphs.md, "Capture".
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace weft::graph {

class Capture;

// Part of every stream.
struct StreamCapture {
    std::shared_ptr<Capture> capture;  // null: work is work
    std::vector<std::uint64_t> next;   // handles of the nodes that the next one comes after
    std::vector<CUgraphNode> told;     // what cuStreamGetCaptureInfo handed out
    const void* context = nullptr;     // set while capturing
    bool is_blocking = false;          // implicitly ordered with the legacy stream
};

// Part of every event: what it stands for while its last record was captured.
struct EventCapture {
    std::weak_ptr<Capture> capture;
    std::vector<std::uint64_t> nodes;
    bool is_captured = false;
};

// How many captures there are: what every call may look at before anything else.
extern std::atomic<int> g_captures;
inline bool is_any_capturing() { return g_captures.load(std::memory_order_relaxed) != 0; }

// The calling thread's mode of cuThreadExchangeStreamCaptureMode.
CUresult exchange_mode(CUstreamCaptureMode* mode);

CUresult begin_capture(StreamCapture& stream, const void* context, bool is_blocking, CUstreamCaptureMode mode);
// Into a graph that exists, after these of its nodes.
CUresult begin_capture_to(StreamCapture& stream, const void* context, bool is_blocking, CUstreamCaptureMode mode,
                          CUgraph graph, const CUgraphNode* after, std::size_t count);
CUresult end_capture(StreamCapture& stream, CUgraph* graph);
CUstreamCaptureStatus capture_status(StreamCapture& stream);
// Any of the out pointers may be null.
CUresult capture_info(StreamCapture& stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** after, std::size_t* count);
CUresult set_capture_dependencies(StreamCapture& stream, const CUgraphNode* after, std::size_t count, unsigned flags);

// The stream is capturing, so work must be captured: adds the node. *made may be null.
CUresult capture_work(StreamCapture& stream, Work work, FunctionShape shape = {}, CUgraphNode* made = nullptr);
// The same for an executable graph, which becomes a child as it is now.
CUresult capture_child(StreamCapture& stream, const Plan& plan);
// The stream is capturing and the call cannot be captured: ends the capture's hopes.
CUresult refuse_capture(StreamCapture& stream, CUresult why = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

// An event is recorded in a stream that captures / does not.
CUresult capture_record(StreamCapture& stream, EventCapture& event);
void forget_record(EventCapture& event);
// A stream waits for an event; one of the two is captured. The stream joins the event's capture.
CUresult capture_wait(StreamCapture& stream, const void* context, bool is_blocking, bool is_legacy,
                      EventCapture& event);
// Asking or waiting for a captured event.
CUresult refuse_event(EventCapture& event);

// A call that could disturb captures (allocations, for one): refused to the thread while a capture forbids it.
CUresult check_unsafe_call();
// The legacy default stream of a context is used, or all of it is synchronised (`why`).
CUresult check_legacy_use(const void* context, CUresult why = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
// The stream is destroyed.
void drop_stream(StreamCapture& stream);

}  // namespace weft::graph
