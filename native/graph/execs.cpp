// Executables: made from graphs, changed node by node or as a whole, launched.
#include <algorithm>
#include <cstring>

#include "graph/backend.h"
#include "graph/calls.h"
#include "graph/work.h"

namespace weft::graph {
namespace {

constexpr cuuint64_t kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* made, CUgraph handle, cuuint64_t flags) {
    if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & ~kKnownFlags) != 0)
        return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 ? CUDA_ERROR_NOT_SUPPORTED
                                                                        : CUDA_ERROR_INVALID_VALUE;
    auto exec = std::make_shared<Exec>();
    exec->flags = flags;
    {
        const StoreLock lock(store().mutex);
        const Graph* graph = store().graph(handle);
        if (graph == nullptr || !make_plan(*graph, &exec->plan)) return CUDA_ERROR_INVALID_VALUE;
        exec->memory.push_back(graph->memory);
        for (const auto& [object, references] : graph->user_objects) {
            exec->user_objects[object] = 1;
            ++store().user_objects[object].references;
        }
    }
    // Not under the lock: this may wait for the GPU's side.
    const CUresult result = backend().instantiate(*exec);
    std::vector<UserObject> ended;
    {
        const StoreLock lock(store().mutex);
        if (result == CUDA_SUCCESS) {
            exec->handle = store().next(Store::kExec);
            *made = reinterpret_cast<CUgraphExec>(exec->handle);
            store().execs[exec->handle] = exec;
        } else {
            for (const auto& [object, references] : exec->user_objects) release_user_object(object, references, &ended);
        }
    }
    for (const UserObject& object : ended) object.destroy(object.data);
    return result;
}

std::shared_ptr<Exec> find_exec(CUgraphExec handle) {
    const StoreLock lock(store().mutex);
    return store().exec(handle);
}

// The node of the executable that was made from this one; the executable is locked.
PlannedNode* find_planned(Exec& exec, CUgraphNode node, std::uint32_t* index) {
    const auto found = exec.plan.index.find(reinterpret_cast<std::uint64_t>(node));
    if (found == exec.plan.index.end()) return nullptr;
    *index = found->second;
    return &exec.plan.nodes[found->second];
}

CUresult update(Exec& exec, std::uint32_t index, Work work) {
    PlannedNode& planned = exec.plan.nodes[index];
    if (is_same(planned.work, work)) return CUDA_SUCCESS;
    std::swap(planned.work, work);
    const CUresult result = backend().update(exec, index, true);
    if (result != CUDA_SUCCESS) std::swap(planned.work, work);
    return result;
}

CUresult set_work(CUgraphExec handle, CUgraphNode node, Work work) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    std::uint32_t index = 0;
    const PlannedNode* planned = find_planned(*exec, node, &index);
    if (planned == nullptr || type_of(planned->work) != type_of(work)) return CUDA_ERROR_INVALID_VALUE;
    if (auto* kernel = std::get_if<KernelWork>(&work))
        kernel->attributes = std::get_if<KernelWork>(&planned->work)->attributes;
    return update(*exec, index, std::move(work));
}

// What keeps the executable from becoming this plan; *at: the node in question.
CUgraphExecUpdateResult compare(const Plan& from, const Plan& to, std::size_t* at) {
    for (*at = 0; *at < std::min(from.nodes.size(), to.nodes.size()); ++*at) {
        const PlannedNode &a = from.nodes[*at], &b = to.nodes[*at];
        if (a.after != b.after) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (type_of(a.work) != type_of(b.work)) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (std::holds_alternative<AllocateWork>(a.work) || std::holds_alternative<FreeWork>(a.work))
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    }
    return from.nodes.size() == to.nodes.size() ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
}

// Gives nodes [first, first + count) of the executable the work of a plan's nodes.
CUresult apply(Exec& exec, std::size_t first, const Plan& plan) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        if (const CUresult result = update(exec, static_cast<std::uint32_t>(first + i), plan.nodes[i].work);
            result != CUDA_SUCCESS)
            return result;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
    return instantiate(made, graph, flags);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
    if (error_node != nullptr) *error_node = nullptr;
    if (log != nullptr && log_bytes != 0) log[0] = '\0';
    return instantiate(made, graph, 0);
}
CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
    return cuGraphInstantiate_v2(made, graph, error_node, log, log_bytes);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    parameters->hErrNode_out = nullptr;
    CUresult result = instantiate(made, graph, parameters->flags);
    if (result == CUDA_SUCCESS && (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
        result = cuGraphUpload(*made, parameters->hUploadStream);
    parameters->result_out = result == CUDA_SUCCESS               ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                             : result == CUDA_ERROR_NOT_SUPPORTED ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                                                                  : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    std::vector<UserObject> ended;
    std::shared_ptr<Exec> exec;
    {
        const StoreLock lock(store().mutex);
        exec = store().exec(handle);
        if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
        store().execs.erase(exec->handle);
        for (const auto& [object, references] : exec->user_objects) release_user_object(object, references, &ended);
    }
    exec.reset();
    for (const UserObject& object : ended) object.destroy(object.data);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Plan plan;
    std::shared_ptr<GraphMemory> memory;
    {
        const StoreLock lock(store().mutex);
        const Graph* graph = store().graph(graph_handle);
        if (graph == nullptr || !make_plan(*graph, &plan)) return CUDA_ERROR_INVALID_VALUE;
        memory = graph->memory;
    }
    const std::lock_guard lock(exec->mutex);
    std::size_t at = 0;
    info->result = compare(exec->plan, plan, &at);
    if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        exec->memory.push_back(std::move(memory));
        const CUresult applied = apply(*exec, 0, plan);
        if (applied == CUDA_SUCCESS) return CUDA_SUCCESS;
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    if (at < plan.nodes.size()) info->errorNode = reinterpret_cast<CUgraphNode>(plan.nodes[at].node);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult updated = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node != nullptr) *error_node = info.errorNode;
    if (result != nullptr) *result = info.result;
    return updated;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    FunctionShape shape;
    const CUresult good = make_kernel(*parameters, &work, &shape);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widen(*parameters);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext) {
    Work work;
    const CUresult good = make_copy(copy, &work);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill,
                                        CUcontext) {
    Work work;
    const CUresult good = make_fill(fill, &work);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    const CUresult good = make_host(parameters->fn, parameters->userData, &work);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    Work work;
    const CUresult good = make_event(event, true, &work);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    Work work;
    const CUresult good = make_event(event, false, &work);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return cuGraphExecChildGraphNodeSetParams(exec, node, parameters->graph.graph);
    Work work;
    FunctionShape shape;
    const CUresult good = make_any(*parameters, &work, &shape);
    return good == CUDA_SUCCESS ? set_work(exec, node, std::move(work)) : good;
}

// The nodes of a child lie behind its own place in the plan, in the order of the child's plan.
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraph child) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Plan plan;
    {
        const StoreLock lock(store().mutex);
        const Graph* graph = store().graph(child);
        const Node* of = store().node(node);
        if (graph == nullptr || of == nullptr || !std::holds_alternative<ChildWork>(of->work) ||
            !make_plan(*graph, &plan))
            return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(exec->mutex);
    std::uint32_t index = 0;
    if (find_planned(*exec, node, &index) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t first = index + 1;
    if (exec->plan.nodes.size() - first < plan.nodes.size()) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        const PlannedNode& old = exec->plan.nodes[first + i];
        std::vector<std::uint32_t> after = plan.nodes[i].after;
        for (std::uint32_t& before : after) before += static_cast<std::uint32_t>(first);
        if (after.empty()) after.push_back(index);
        if (after != old.after || type_of(old.work) != type_of(plan.nodes[i].work) || old.node == 0)
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    return apply(*exec, first, plan);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr || enabled > 1) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    std::uint32_t index = 0;
    PlannedNode* planned = find_planned(*exec, node, &index);
    if (planned == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeType type = type_of(planned->work);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    if (planned->is_enabled == (enabled != 0)) return CUDA_SUCCESS;
    planned->is_enabled = enabled != 0;
    return backend().update(*exec, index, false);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int* enabled) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    std::uint32_t index = 0;
    const PlannedNode* planned = find_planned(*exec, node, &index);
    if (planned == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *enabled = planned->is_enabled ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    return backend().upload(*exec, stream);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
    const std::shared_ptr<Exec> exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(exec->mutex);
    return backend().launch(*exec, stream);
}

}  // namespace weft::graph
