// See graphs.h. Knows no session: nodes were resolved before.
#include "executor/graphs.h"

#include <queue>
#include <utility>

namespace weft::executor {

GraphState::~GraphState() {
    for (const GraphStep& step : steps) {
        if (step.exec != nullptr) driver.cuGraphExecDestroy(step.exec);
        if (step.graph != nullptr) driver.cuGraphDestroy(step.graph);
    }
}

bool GraphState::has_driver_graphs() const {
    return driver.cuGraphCreate != nullptr && driver.cuGraphDestroy != nullptr &&
           driver.cuGraphAddKernelNode_v2 != nullptr && driver.cuGraphAddMemsetNode != nullptr &&
           driver.cuGraphAddMemcpyNode != nullptr && driver.cuGraphAddEmptyNode != nullptr &&
           driver.cuGraphKernelNodeSetAttribute != nullptr && driver.cuGraphInstantiateWithFlags != nullptr &&
           driver.cuGraphExecDestroy != nullptr && driver.cuGraphLaunch != nullptr &&
           driver.cuGraphExecKernelNodeSetParams_v2 != nullptr && driver.cuGraphExecMemsetNodeSetParams != nullptr &&
           driver.cuGraphExecMemcpyNodeSetParams != nullptr && driver.cuGraphNodeSetEnabled != nullptr;
}

// An order that keeps the edges, with the nodes that the driver can do alone as near to each other as they allow.
std::vector<std::uint32_t> GraphState::order() const {
    std::vector<std::vector<std::uint32_t>> next(nodes.size());
    std::vector<std::size_t> open(nodes.size());
    std::queue<std::uint32_t> alone, by_frame;
    const auto offer = [&](std::uint32_t index) {
        (nodes[index].kind == GraphWork::Kind::by_frame ? by_frame : alone).push(index);
    };
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        open[i] = nodes[i].after.size();
        for (const std::uint32_t before : nodes[i].after) next[before].push_back(i);
        if (open[i] == 0) offer(i);
    }
    std::vector<std::uint32_t> order;
    order.reserve(nodes.size());
    while (!alone.empty() || !by_frame.empty()) {
        std::queue<std::uint32_t>& from = alone.empty() ? by_frame : alone;
        const std::uint32_t index = from.front();
        from.pop();
        order.push_back(index);
        for (const std::uint32_t after : next[index])
            if (--open[after] == 0) offer(after);
    }
    return order;
}

CUresult GraphState::build() {
    const std::vector<std::uint32_t> ordered = order();
    const bool use_driver = has_driver_graphs();
    for (std::size_t i = 0; i < ordered.size();) {
        std::size_t end = i;
        std::size_t working = 0;
        while (end < ordered.size() && nodes[ordered[end]].kind != GraphWork::Kind::by_frame)
            working += nodes[ordered[end++]].kind != GraphWork::Kind::nothing ? 1 : 0;
        const std::span<const std::uint32_t> run(ordered.data() + i, end - i);
        CUresult built = CUDA_ERROR_NOT_SUPPORTED;
        if (use_driver && working > 1) built = build_driver_graph(run);
        if (built != CUDA_SUCCESS && built != CUDA_ERROR_NOT_SUPPORTED) return built;
        if (built != CUDA_SUCCESS) {
            // One by one, which is the same but for what could have run at the same time.
            end = std::max(end, i + 1);
            for (std::size_t at = i; at < end; ++at)
                if (!nodes[ordered[at]].frame.empty()) steps.push_back({ordered[at], nullptr, nullptr});
        }
        i = end;
    }
    return CUDA_SUCCESS;
}

CUresult GraphState::build_driver_graph(std::span<const std::uint32_t> run) {
    GraphStep step;
    CUresult result = driver.cuGraphCreate(&step.graph, 0);
    for (std::size_t i = 0; i < run.size() && result == CUDA_SUCCESS; ++i) {
        // Nodes of earlier steps come first anyway.
        std::vector<CUgraphNode> after;
        for (const std::uint32_t before : nodes[run[i]].after)
            if (nodes[before].driver_node != nullptr && nodes[before].driver_exec == nullptr)
                after.push_back(nodes[before].driver_node);
        result = add_driver_node(step.graph, run[i], after);
    }
    if (result == CUDA_SUCCESS) result = driver.cuGraphInstantiateWithFlags(&step.exec, step.graph, 0);
    if (result != CUDA_SUCCESS) {
        undo(step, run);
        return result;
    }
    for (const std::uint32_t index : run) {
        nodes[index].driver_exec = step.exec;
        if (!nodes[index].is_enabled && nodes[index].kind != GraphWork::Kind::nothing)
            (void)driver.cuGraphNodeSetEnabled(step.exec, nodes[index].driver_node, 0);
    }
    steps.push_back(step);
    return CUDA_SUCCESS;
}

CUresult GraphState::add_driver_node(CUgraph graph, std::uint32_t index, const std::vector<CUgraphNode>& after) {
    GraphWork& work = works[index];
    CUgraphNode* node = &nodes[index].driver_node;
    switch (work.kind) {
        case GraphWork::Kind::kernel: {
            std::size_t size = work.parameters.size();
            void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                             CU_LAUNCH_PARAM_END};
            work.kernel.extra = size != 0 ? extra : nullptr;
            CUresult result = driver.cuGraphAddKernelNode_v2(node, graph, after.data(), after.size(), &work.kernel);
            for (std::size_t i = 0; i < work.attributes.size() && result == CUDA_SUCCESS; ++i)
                result = driver.cuGraphKernelNodeSetAttribute(*node, work.attributes[i].id, &work.attributes[i].value);
            return result;
        }
        case GraphWork::Kind::copy:
        case GraphWork::Kind::fill: {
            CUcontext current = nullptr;
            if (const CUresult got = driver.cuCtxGetCurrent(&current); got != CUDA_SUCCESS) return got;
            if (work.kind == GraphWork::Kind::copy)
                return driver.cuGraphAddMemcpyNode(node, graph, after.data(), after.size(), &work.copy, current);
            return driver.cuGraphAddMemsetNode(node, graph, after.data(), after.size(), &work.fill, current);
        }
        default: return driver.cuGraphAddEmptyNode(node, graph, after.data(), after.size());
    }
}

CUresult update_driver_node(const driver::DriverTable& driver, const GraphNodeState& node, GraphWork& work,
                            CUcontext context) {
    switch (work.kind) {
        case GraphWork::Kind::kernel: {
            std::size_t size = work.parameters.size();
            void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                             CU_LAUNCH_PARAM_END};
            work.kernel.extra = size != 0 ? extra : nullptr;
            return driver.cuGraphExecKernelNodeSetParams_v2(node.driver_exec, node.driver_node, &work.kernel);
        }
        case GraphWork::Kind::copy:
            return driver.cuGraphExecMemcpyNodeSetParams(node.driver_exec, node.driver_node, &work.copy, context);
        case GraphWork::Kind::fill:
            return driver.cuGraphExecMemsetNodeSetParams(node.driver_exec, node.driver_node, &work.fill, context);
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

void GraphState::undo(GraphStep& step, std::span<const std::uint32_t> run) {
    for (const std::uint32_t index : run) nodes[index].driver_node = nullptr;
    if (step.graph != nullptr) driver.cuGraphDestroy(step.graph);
}

}  // namespace weft::executor
