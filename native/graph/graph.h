// CUDA graphs as data: nodes with what they do, edges, executables, and the tables that find them by handle. Shared by
// the shim and the software GPU, which differ in how an executable runs (backend.h). Guarded by one lock (store()).
// Design note: docs/design/graphs.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <variant>
#include <vector>

#include "gen/cuda_abi.h"

namespace weft::graph {

struct ParameterShape {
    std::uint32_t offset = 0, size_bytes = 0;
};
// How a function's parameters are packed.
struct FunctionShape {
    std::uint32_t parameter_bytes = 0;
    std::vector<ParameterShape> parameters;
};

// What a node does.
struct KernelWork {
    CUfunction function = nullptr;
    CUkernel kernel = nullptr;  // if the program named a kernel of a library instead
    unsigned grid[3] = {}, block[3] = {};
    unsigned shared_bytes = 0;
    std::vector<std::byte> parameters;  // packed
    std::vector<CUlaunchAttribute> attributes;
};
struct CopyWork {
    CUDA_MEMCPY3D copy{};
};
struct FillWork {
    CUDA_MEMSET_NODE_PARAMS fill{};
};
struct HostWork {
    CUhostFn function = nullptr;
    void* data = nullptr;
};
struct EventWork {
    CUevent event = nullptr;
    bool is_record = false;
};
struct AllocateWork {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 parameters{};
};
struct FreeWork {
    CUdeviceptr address = 0;
};
struct EmptyWork {};
class Graph;
struct ChildWork {
    std::shared_ptr<Graph> graph;  // a copy that belongs to the node
};
using Work =
    std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, EventWork, AllocateWork, FreeWork, ChildWork>;

CUgraphNodeType type_of(const Work& work);

class Node;
struct Edge {
    Node* from;
    CUgraphEdgeData data;
};

class Node {
  public:
    std::uint64_t handle = 0;
    std::uint64_t original = 0;  // in a clone: the node it was made from
    Graph* graph = nullptr;
    Work work;
    std::vector<Edge> before;  // in the order in which they were added
    std::vector<Node*> after;
    // What cuGraphKernelNodeGetParams hands out.
    FunctionShape shape;
    std::vector<void*> pointers;

    CUgraphNode as_handle() const { return reinterpret_cast<CUgraphNode>(handle); }
    const Edge* edge_from(const Node& node) const;
};

// Memory of a graph's allocation nodes; goes when the graph and all its executables are gone.
class GraphMemory {
  public:
    ~GraphMemory();
    std::vector<CUdeviceptr> addresses;
};

struct UserObject {
    void* data = nullptr;
    CUhostFn destroy = nullptr;
    std::uint64_t references = 0;
};

class Graph {
  public:
    ~Graph();
    std::uint64_t handle = 0;
    std::uint64_t original = 0;
    bool belongs_to_node = false;              // of a child-graph node: not destroyed by the program
    std::vector<std::unique_ptr<Node>> nodes;  // in the order in which they were made
    std::shared_ptr<GraphMemory> memory = std::make_shared<GraphMemory>();
    std::unordered_map<std::uint64_t, std::uint64_t> user_objects;  // references by handle

    Node* add(Work work);
    bool connect(Node& from, Node& to, const CUgraphEdgeData& data);  // false: there is such an edge
    bool disconnect(Node& from, Node& to);
    void remove(Node& node);
    // A copy; `nodes` of the copy are in the same order.
    std::shared_ptr<Graph> clone() const;
};

// A node of an executable: those of child graphs lie between the others.
struct PlannedNode {
    std::uint64_t node = 0;  // handle of the node it was made from; 0: an end of a child graph
    Work work;
    bool is_enabled = true;
    std::vector<std::uint32_t> after;  // indices of the nodes that come first, all smaller
};
// Nodes in an order in which they may run.
struct Plan {
    std::vector<PlannedNode> nodes;
    std::unordered_map<std::uint64_t, std::uint32_t> index;  // by node handle
};
// False: the edges make a circle.
bool make_plan(const Graph& graph, Plan* plan);

// What the driver keeps of an executable.
struct Executable {
    virtual ~Executable() = default;
};
class Exec {
  public:
    std::uint64_t handle = 0;
    std::uint64_t flags = 0;
    std::mutex mutex;  // launches and updates are ordered
    Plan plan;
    std::vector<std::shared_ptr<GraphMemory>> memory;
    std::unordered_map<std::uint64_t, std::uint64_t> user_objects;
    std::unique_ptr<Executable> executable;
    ~Exec();
};

// Everything by handle: tag(8) | number(56), never a pointer and never used twice.
struct Store {
    std::mutex mutex;
    std::uint64_t last = 0;
    std::unordered_map<std::uint64_t, std::shared_ptr<Graph>> graphs;
    std::unordered_map<std::uint64_t, Node*> nodes;
    std::unordered_map<std::uint64_t, std::shared_ptr<Exec>> execs;
    std::unordered_map<std::uint64_t, UserObject> user_objects;

    enum Tag : std::uint64_t { kGraph = 0x50, kNode = 0x51, kExec = 0x52, kUserObject = 0x53 };
    std::uint64_t next(Tag tag) { return static_cast<std::uint64_t>(tag) << 56 | ++last; }
    Graph* graph(CUgraph handle) {
        const auto found = graphs.find(reinterpret_cast<std::uint64_t>(handle));
        return found != graphs.end() ? found->second.get() : nullptr;
    }
    Node* node(CUgraphNode handle) {
        const auto found = nodes.find(reinterpret_cast<std::uint64_t>(handle));
        return found != nodes.end() ? found->second : nullptr;
    }
    std::shared_ptr<Exec> exec(CUgraphExec handle) {
        const auto found = execs.find(reinterpret_cast<std::uint64_t>(handle));
        return found != execs.end() ? found->second : nullptr;
    }
};
Store& store();
using StoreLock = std::lock_guard<std::mutex>;

// Gives references of a user object back; the store is locked. The function to call when it was the last goes to
// `ended`, to be called without the lock.
void release_user_object(std::uint64_t handle, std::uint64_t count, std::vector<UserObject>* ended);

}  // namespace weft::graph
