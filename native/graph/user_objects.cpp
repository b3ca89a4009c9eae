// Objects of the program whose life is tied to graphs, and the drawing of graphs.
#include <cstdio>
#include <string>

#include "graph/calls.h"
#include "graph/graph.h"

namespace weft::graph {
namespace {

const char* name_of(CUgraphNodeType type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: return "KERNEL";
        case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
        case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
        case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
        case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
        case CU_GRAPH_NODE_TYPE_EMPTY: return "EMPTY";
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "WAIT_EVENT";
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
        case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
        default: return "NODE";
    }
}

std::string label_of(const Node& node, std::size_t number) {
    std::string label = std::to_string(number) + "\\n" + name_of(type_of(node.work));
    char text[160];
    if (const auto* kernel = std::get_if<KernelWork>(&node.work)) {
        std::snprintf(text, sizeof text, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", kernel->grid[0], kernel->grid[1],
                      kernel->grid[2], kernel->block[0], kernel->block[1], kernel->block[2], kernel->shared_bytes);
        label += text;
    } else if (const auto* copy = std::get_if<CopyWork>(&node.work)) {
        std::snprintf(text, sizeof text, "\\n%zu x %zu x %zu bytes", copy->copy.WidthInBytes, copy->copy.Height,
                      copy->copy.Depth);
        label += text;
    } else if (const auto* fill = std::get_if<FillWork>(&node.work)) {
        std::snprintf(text, sizeof text, "\\n%zu x %zu of %u bytes", fill->fill.width, fill->fill.height,
                      fill->fill.elementSize);
        label += text;
    }
    return label;
}

// Nodes and edges of a graph and of its children, each child a cluster of its own.
void draw(const Graph& graph, const std::string& name, std::string* out) {
    *out += "subgraph cluster_" + name + " {\nlabel=\"" + name + "\";\n";
    std::unordered_map<const Node*, std::string> names;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = *graph.nodes[i];
        names[&node] = name + "_node_" + std::to_string(i);
        *out += "\"" + names[&node] + "\" [shape=\"record\" label=\"" + label_of(node, i) + "\"];\n";
        if (const auto* child = std::get_if<ChildWork>(&node.work)) draw(*child->graph, names[&node], out);
    }
    for (const auto& node : graph.nodes)
        for (const Edge& edge : node->before)
            *out += "\"" + names[edge.from] + "\" -> \"" + names[node.get()] + "\";\n";
    *out += "}\n";
}

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
    std::string text = "digraph dot {\n";
    {
        const StoreLock lock(store().mutex);
        const Graph* graph = store().graph(handle);
        if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
        draw(*graph, "graph", &text);
    }
    text += "}\n";
    std::FILE* file = std::fopen(path, "we");
    if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuUserObjectCreate(CUuserObject* made, void* data, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
    // The flag has to be there: that the destructor does not wait for anybody.
    if (made == nullptr || destroy == nullptr || references == 0 || references > INT32_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    const StoreLock lock(store().mutex);
    const std::uint64_t handle = store().next(Store::kUserObject);
    store().user_objects[handle] = {data, destroy, references};
    *made = reinterpret_cast<CUuserObject>(handle);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
    const StoreLock lock(store().mutex);
    const auto found = store().user_objects.find(reinterpret_cast<std::uint64_t>(object));
    if (found == store().user_objects.end() || count == 0) return CUDA_ERROR_INVALID_VALUE;
    found->second.references += count;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    std::vector<UserObject> ended;
    {
        const StoreLock lock(store().mutex);
        const auto found = store().user_objects.find(reinterpret_cast<std::uint64_t>(object));
        if (found == store().user_objects.end() || count == 0 || count > found->second.references)
            return CUDA_ERROR_INVALID_VALUE;
        release_user_object(found->first, count, &ended);
    }
    for (const UserObject& each : ended) each.destroy(each.data);
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count, unsigned int flags) {
    const StoreLock lock(store().mutex);
    Graph* graph = store().graph(handle);
    const auto found = store().user_objects.find(reinterpret_cast<std::uint64_t>(object));
    if (graph == nullptr || found == store().user_objects.end() || count == 0 ||
        (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const bool moves = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;
    if (moves && found->second.references < count) return CUDA_ERROR_INVALID_VALUE;
    if (!moves) found->second.references += count;
    graph->user_objects[found->first] += count;
    return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count) {
    std::vector<UserObject> ended;
    {
        const StoreLock lock(store().mutex);
        Graph* graph = store().graph(handle);
        if (graph == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
        const auto held = graph->user_objects.find(reinterpret_cast<std::uint64_t>(object));
        if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
        release_user_object(held->first, count, &ended);
        if ((held->second -= count) == 0) graph->user_objects.erase(held);
    }
    for (const UserObject& each : ended) each.destroy(each.data);
    return CUDA_SUCCESS;
}

}  // namespace weft::graph
