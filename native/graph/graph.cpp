#include "graph/graph.h"

#include <algorithm>

#include "graph/backend.h"

namespace weft::graph {

Store& store() {
    static Store& everything = *new Store;  // programs call the driver from exit handlers
    return everything;
}

CUgraphNodeType type_of(const Work& work) {
    static constexpr CUgraphNodeType kTypes[] = {
        CU_GRAPH_NODE_TYPE_EMPTY,     CU_GRAPH_NODE_TYPE_KERNEL,   CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,    CU_GRAPH_NODE_TYPE_HOST,     CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_GRAPH};
    static_assert(std::size(kTypes) == std::variant_size_v<Work>);
    const auto* event = std::get_if<EventWork>(&work);
    return event != nullptr && event->is_record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : kTypes[work.index()];
}

GraphMemory::~GraphMemory() {
    for (const CUdeviceptr address : addresses) backend().release(address);
}

const Edge* Node::edge_from(const Node& node) const {
    const auto found = std::find_if(before.begin(), before.end(), [&](const Edge& edge) { return edge.from == &node; });
    return found != before.end() ? &*found : nullptr;
}

// The store is locked whenever a graph ends.
Graph::~Graph() {
    for (const auto& node : nodes) {
        if (const auto* child = std::get_if<ChildWork>(&node->work)) store().graphs.erase(child->graph->handle);
        store().nodes.erase(node->handle);
    }
}

Exec::~Exec() = default;

Node* Graph::add(Work work) {
    auto node = std::make_unique<Node>();
    node->handle = store().next(Store::kNode);
    node->graph = this;
    node->work = std::move(work);
    store().nodes[node->handle] = node.get();
    nodes.push_back(std::move(node));
    return nodes.back().get();
}

bool Graph::connect(Node& from, Node& to, const CUgraphEdgeData& data) {
    if (to.edge_from(from) != nullptr) return false;
    to.before.push_back({&from, data});
    from.after.push_back(&to);
    return true;
}

bool Graph::disconnect(Node& from, Node& to) {
    if (std::erase_if(to.before, [&](const Edge& edge) { return edge.from == &from; }) == 0) return false;
    std::erase(from.after, &to);
    return true;
}

void Graph::remove(Node& node) {
    for (Node* next : std::vector<Node*>(node.after)) disconnect(node, *next);
    for (const Edge& edge : std::vector<Edge>(node.before)) disconnect(*edge.from, node);
    if (const auto* child = std::get_if<ChildWork>(&node.work)) store().graphs.erase(child->graph->handle);
    store().nodes.erase(node.handle);
    std::erase_if(nodes, [&](const auto& owned) { return owned.get() == &node; });
}

std::shared_ptr<Graph> Graph::clone() const {
    auto copy = std::make_shared<Graph>();
    copy->original = handle;
    copy->memory = memory;
    std::unordered_map<const Node*, Node*> twin;
    for (const auto& node : nodes) {
        Work work = node->work;
        if (auto* child = std::get_if<ChildWork>(&work)) {
            child->graph = child->graph->clone();
            child->graph->handle = store().next(Store::kGraph);
            child->graph->belongs_to_node = true;
            store().graphs[child->graph->handle] = child->graph;
        }
        Node* made = copy->add(std::move(work));
        made->original = node->handle;
        made->shape = node->shape;
        twin[node.get()] = made;
    }
    for (const auto& node : nodes)
        for (const Edge& edge : node->before) copy->connect(*twin[edge.from], *twin[node.get()], edge.data);
    return copy;
}

namespace {

// Appends the nodes of a graph, each after those it depends on; roots come after the nodes `entry`. The nodes without
// dependents go to *leaves.
bool append(const Graph& graph, const std::vector<std::uint32_t>& entry, Plan* plan,
            std::vector<std::uint32_t>* leaves) {
    std::unordered_map<const Node*, std::uint32_t> place;
    std::unordered_map<const Node*, std::size_t> open;
    std::vector<const Node*> ready;
    for (const auto& node : graph.nodes) {
        open[node.get()] = node->before.size();
        if (node->before.empty()) ready.push_back(node.get());
    }
    for (std::size_t next = 0; next < ready.size(); ++next) {
        const Node& node = *ready[next];
        PlannedNode planned;
        planned.node = node.handle;
        for (const Edge& edge : node.before) planned.after.push_back(place[edge.from]);
        if (node.before.empty()) planned.after = entry;
        const auto* child = std::get_if<ChildWork>(&node.work);
        if (child == nullptr) planned.work = node.work;
        auto at = static_cast<std::uint32_t>(plan->nodes.size());
        plan->index[node.handle] = at;
        plan->nodes.push_back(std::move(planned));
        if (child != nullptr) {
            // The node itself begins the child; an empty node ends it.
            PlannedNode end;
            if (!append(*child->graph, {at}, plan, &end.after)) return false;
            if (end.after.empty()) end.after.push_back(at);
            at = static_cast<std::uint32_t>(plan->nodes.size());
            plan->nodes.push_back(std::move(end));
        }
        place[&node] = at;
        if (node.after.empty() && leaves != nullptr) leaves->push_back(at);
        for (const Node* after : node.after)
            if (--open[after] == 0) ready.push_back(after);
    }
    return ready.size() == graph.nodes.size();
}

}  // namespace

bool make_plan(const Graph& graph, Plan* plan) { return append(graph, {}, plan, nullptr); }

void release_user_object(std::uint64_t handle, std::uint64_t count, std::vector<UserObject>* ended) {
    const auto found = store().user_objects.find(handle);
    if (found == store().user_objects.end()) return;
    found->second.references -= std::min(count, found->second.references);
    if (found->second.references != 0) return;
    ended->push_back(found->second);
    store().user_objects.erase(found);
}

}  // namespace weft::graph
