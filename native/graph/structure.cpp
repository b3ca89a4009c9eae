// Graphs, nodes and edges as the program sees them: making, taking apart, asking.
#include <algorithm>
#include <cstring>

#include "graph/calls.h"
#include "graph/graph.h"

namespace weft::graph {
namespace {

constexpr CUgraphEdgeData kFullEdge{};

bool is_full(const CUgraphEdgeData& data) { return std::memcmp(&data, &kFullEdge, sizeof data) == 0; }

CUresult find_graph(CUgraph handle, Graph** graph) {
    *graph = store().graph(handle);
    return *graph != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_node(CUgraphNode handle, Node** node) {
    *node = store().node(handle);
    return *node != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The manual's convention for lists: without an array only the number is asked; else *count is the room of the array,
// and what is left of it is filled with null.
template <typename Fill>
CUresult hand_out(std::size_t found, bool has_array, size_t* count, Fill&& fill) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!has_array) {
        *count = found;
        return CUDA_SUCCESS;
    }
    for (std::size_t i = 0; i < *count; ++i) fill(i, i < found);
    *count = std::min(*count, found);
    return CUDA_SUCCESS;
}

CUresult hand_out_nodes(const std::vector<const Node*>& found, CUgraphNode* nodes, size_t* count) {
    return hand_out(found.size(), nodes != nullptr, count,
                    [&](std::size_t i, bool is_there) { nodes[i] = is_there ? found[i]->as_handle() : nullptr; });
}

struct FoundEdge {
    const Node *from, *to;
    CUgraphEdgeData data;
};

std::vector<FoundEdge> edges_of(const Graph& graph) {
    std::vector<FoundEdge> edges;
    for (const auto& node : graph.nodes)
        for (const Edge& edge : node->before) edges.push_back({edge.from, node.get(), edge.data});
    return edges;
}

// The older calls cannot tell of data at edges.
bool loses_data(const std::vector<FoundEdge>& edges, const void* data, const void* nodes) {
    return data == nullptr && nodes != nullptr &&
           std::any_of(edges.begin(), edges.end(), [](const FoundEdge& edge) { return !is_full(edge.data); });
}

CUresult hand_out_edges(const std::vector<FoundEdge>& found, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                        size_t* count) {
    if (loses_data(found, data, from != nullptr ? from : to)) return CUDA_ERROR_LOSSY_QUERY;
    return hand_out(found.size(), from != nullptr || to != nullptr, count, [&](std::size_t i, bool is_there) {
        if (from != nullptr) from[i] = is_there ? found[i].from->as_handle() : nullptr;
        if (to != nullptr) to[i] = is_there ? found[i].to->as_handle() : nullptr;
        if (data != nullptr) data[i] = is_there ? found[i].data : kFullEdge;
    });
}

// Both ends of every pair; nothing is changed before all were looked at.
CUresult find_pairs(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                    std::vector<std::pair<Node*, Node*>>* pairs) {
    Graph* graph;
    if (const CUresult result = find_graph(handle, &graph); result != CUDA_SUCCESS) return result;
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        Node *first = store().node(from[i]), *second = store().node(to[i]);
        if (first == nullptr || second == nullptr || first == second || first->graph != graph || second->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
        pairs->emplace_back(first, second);
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const StoreLock lock(store().mutex);
    auto graph = std::make_shared<Graph>();
    graph->handle = store().next(Store::kGraph);
    *out = reinterpret_cast<CUgraph>(graph->handle);
    store().graphs[graph->handle] = std::move(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
    std::vector<UserObject> ended;
    {
        const StoreLock lock(store().mutex);
        Graph* graph;
        if (const CUresult result = find_graph(handle, &graph); result != CUDA_SUCCESS) return result;
        if (graph->belongs_to_node) return CUDA_ERROR_INVALID_VALUE;
        for (const auto& [object, references] : graph->user_objects) release_user_object(object, references, &ended);
        const std::shared_ptr<Graph> last = store().graphs[graph->handle];
        store().graphs.erase(graph->handle);
    }
    for (const UserObject& object : ended) object.destroy(object.data);
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
    const StoreLock lock(store().mutex);
    Graph* graph;
    if (const CUresult result = find_graph(original, &graph); result != CUDA_SUCCESS) return result;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> clone = graph->clone();
    clone->handle = store().next(Store::kGraph);
    *out = reinterpret_cast<CUgraph>(clone->handle);
    store().graphs[clone->handle] = std::move(clone);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph handle) {
    const StoreLock lock(store().mutex);
    Graph* clone;
    if (const CUresult result = find_graph(handle, &clone); result != CUDA_SUCCESS) return result;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto wanted = reinterpret_cast<std::uint64_t>(original);
    for (const auto& node : clone->nodes) {
        if (node->original != wanted || wanted == 0) continue;
        *out = node->as_handle();
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
    const StoreLock lock(store().mutex);
    Node* node;
    if (const CUresult result = find_node(handle, &node); result != CUDA_SUCCESS) return result;
    if (std::holds_alternative<AllocateWork>(node->work) || std::holds_alternative<FreeWork>(node->work))
        return CUDA_ERROR_NOT_SUPPORTED;
    node->graph->remove(*node);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    const StoreLock lock(store().mutex);
    Graph* graph;
    if (const CUresult result = find_graph(handle, &graph); result != CUDA_SUCCESS) return result;
    std::vector<const Node*> found;
    for (const auto& node : graph->nodes) found.push_back(node.get());
    return hand_out_nodes(found, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    const StoreLock lock(store().mutex);
    Graph* graph;
    if (const CUresult result = find_graph(handle, &graph); result != CUDA_SUCCESS) return result;
    std::vector<const Node*> found;
    for (const auto& node : graph->nodes)
        if (node->before.empty()) found.push_back(node.get());
    return hand_out_nodes(found, nodes, count);
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
    const StoreLock lock(store().mutex);
    Graph* graph;
    if (const CUresult result = find_graph(handle, &graph); result != CUDA_SUCCESS) return result;
    if ((from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return hand_out_edges(edges_of(*graph), from, to, data, count);
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
    const StoreLock lock(store().mutex);
    Node* node;
    if (const CUresult result = find_node(handle, &node); result != CUDA_SUCCESS) return result;
    std::vector<FoundEdge> found;
    for (const Edge& edge : node->before) found.push_back({edge.from, node, edge.data});
    return hand_out_edges(found, nodes, nullptr, data, count);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
    const StoreLock lock(store().mutex);
    Node* node;
    if (const CUresult result = find_node(handle, &node); result != CUDA_SUCCESS) return result;
    std::vector<FoundEdge> found;
    for (const Node* after : node->after) found.push_back({node, after, after->edge_from(*node)->data});
    return hand_out_edges(found, nullptr, nodes, data, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
    const StoreLock lock(store().mutex);
    std::vector<std::pair<Node*, Node*>> pairs;
    if (const CUresult result = find_pairs(handle, from, to, count, &pairs); result != CUDA_SUCCESS) return result;
    for (const auto& [first, second] : pairs)
        if (second->edge_from(*first) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i)
        pairs[i].first->graph->connect(*pairs[i].first, *pairs[i].second, data != nullptr ? data[i] : kFullEdge);
    return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
    const StoreLock lock(store().mutex);
    std::vector<std::pair<Node*, Node*>> pairs;
    if (const CUresult result = find_pairs(handle, from, to, count, &pairs); result != CUDA_SUCCESS) return result;
    for (std::size_t i = 0; i < count; ++i) {
        const Edge* edge = pairs[i].second->edge_from(*pairs[i].first);
        const CUgraphEdgeData& wanted = data != nullptr ? data[i] : kFullEdge;
        if (edge == nullptr || std::memcmp(&edge->data, &wanted, sizeof wanted) != 0) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& [first, second] : pairs) first->graph->disconnect(*first, *second);
    return CUDA_SUCCESS;
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
    return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    const StoreLock lock(store().mutex);
    Node* node;
    if (const CUresult result = find_node(handle, &node); result != CUDA_SUCCESS) return result;
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->work);
    return CUDA_SUCCESS;
}

}  // namespace weft::graph
