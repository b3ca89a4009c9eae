// Executable graphs of the client: nodes are frames, run in an order that keeps the edges. Where the driver has graphs,
// neighbouring nodes that need nothing of the client become one of its graphs. Design note: docs/design/graphs.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/event_pool.h"
#include "gen/driver_table.h"

namespace weft::executor {

struct ContextState;

// A node's frame in the terms of the driver, if the driver can do it in a graph.
struct GraphWork {
    enum class Kind : std::uint8_t { nothing, kernel, copy, fill, by_frame };
    Kind kind = Kind::nothing;
    CUDA_KERNEL_NODE_PARAMS kernel{};
    std::vector<std::byte> parameters;
    std::vector<CUlaunchAttribute> attributes;
    CUDA_MEMCPY3D copy{};
    CUDA_MEMSET_NODE_PARAMS fill{};
};

struct GraphNodeState {
    std::vector<std::byte> frame;  // empty: only orders others
    std::vector<std::uint32_t> after;
    bool is_enabled = true;
    GraphWork::Kind kind = GraphWork::Kind::nothing;
    std::uint32_t record = 0;           // EVENT_RECORD: the client's count, of the launch under way
    CUgraphNode driver_node = nullptr;  // if it is part of a graph of the driver
    CUgraphExec driver_exec = nullptr;
};

// One thing that a launch gives to the driver: a graph of its own, or a node's frame.
struct GraphStep {
    std::uint32_t node = 0;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
};

struct GraphState {
    explicit GraphState(const driver::DriverTable& driver_table) : driver(driver_table) {}
    ~GraphState();  // its context is current
    GraphState(const GraphState&) = delete;

    const driver::DriverTable& driver;
    ContextState* context = nullptr;
    std::uint32_t number = 0;
    bool is_instantiated = false, is_ready = false;
    CUresult failure = CUDA_SUCCESS;
    std::vector<GraphNodeState> nodes;
    std::vector<GraphWork> works;  // of all nodes, between instantiation and readiness
    std::vector<GraphStep> steps;
    std::size_t bytes = 0;
    // Events that its nodes touch, for the order of launches; null: none. Parked frames keep the list they came with.
    std::shared_ptr<const std::vector<std::uint32_t>> events;
    // The end of the last launch, which the next one follows in whatever stream.
    EventRef last;
    std::uint32_t last_stream = 0;

    // Orders the nodes and builds what the driver can take as graphs. In the context's thread of long calls.
    CUresult build();

  private:
    bool has_driver_graphs() const;
    std::vector<std::uint32_t> order() const;
    CUresult build_driver_graph(std::span<const std::uint32_t> run);
    CUresult add_driver_node(CUgraph graph, std::uint32_t index, const std::vector<CUgraphNode>& after);
    void undo(GraphStep& step, std::span<const std::uint32_t> run);
};

// Gives a node of a graph of the driver new work of the same kind.
CUresult update_driver_node(const driver::DriverTable& driver, const GraphNodeState& node, GraphWork& work,
                            CUcontext context);

// A launch that has given some of its steps to the driver.
struct GraphRun {
    std::shared_ptr<GraphState> graph;
    std::size_t next = 0;
    bool waits_for_room = false;  // the driver has as much of the stream as it may
};

}  // namespace weft::executor
