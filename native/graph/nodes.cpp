// Nodes: adding them, and asking and changing what they do.
#include <algorithm>
#include <cstring>

#include "graph/backend.h"
#include "graph/calls.h"
#include "graph/work.h"

namespace weft::graph {
namespace {

// The graph and the nodes that a new one comes after; the store is locked.
CUresult find_place(CUgraph handle, const CUgraphNode* after, size_t count, Graph** graph, std::vector<Node*>* before) {
    *graph = store().graph(handle);
    if (*graph == nullptr || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        Node* node = store().node(after[i]);
        if (node == nullptr || node->graph != *graph ||
            std::find(before->begin(), before->end(), node) != before->end())
            return CUDA_ERROR_INVALID_VALUE;
        before->push_back(node);
    }
    return CUDA_SUCCESS;
}

CUresult add(CUgraphNode* made, CUgraph handle, const CUgraphNode* after, const CUgraphEdgeData* data, size_t count,
             Work work, FunctionShape shape = {}) {
    if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const StoreLock lock(store().mutex);
    Graph* graph;
    std::vector<Node*> before;
    if (const CUresult found = find_place(handle, after, count, &graph, &before); found != CUDA_SUCCESS) return found;
    Node* node = graph->add(std::move(work));
    node->shape = std::move(shape);
    for (std::size_t i = 0; i < count; ++i)
        graph->connect(*before[i], *node, data != nullptr ? data[i] : CUgraphEdgeData{});
    if (const auto* allocation = std::get_if<AllocateWork>(&node->work))
        graph->memory->addresses.push_back(allocation->parameters.dptr);
    *made = node->as_handle();
    return CUDA_SUCCESS;
}

template <typename T>
CUresult find_work(CUgraphNode handle, const void* out, Node** node, T** work) {
    *node = store().node(handle);
    if (*node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *work = std::get_if<T>(&(*node)->work);
    return *work != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A node keeps its type for ever.
CUresult replace(CUgraphNode handle, Work work, FunctionShape shape = {}) {
    const StoreLock lock(store().mutex);
    Node* node = store().node(handle);
    if (node == nullptr || type_of(node->work) != type_of(work)) return CUDA_ERROR_INVALID_VALUE;
    if (auto* kernel = std::get_if<KernelWork>(&work))
        kernel->attributes = std::get_if<KernelWork>(&node->work)->attributes;
    node->work = std::move(work);
    node->shape = std::move(shape);
    return CUDA_SUCCESS;
}

CUresult get_event(CUgraphNode handle, bool is_record, CUevent* event) {
    const StoreLock lock(store().mutex);
    Node* node;
    EventWork* work;
    if (const CUresult found = find_work(handle, event, &node, &work); found != CUDA_SUCCESS) return found;
    if (work->is_record != is_record) return CUDA_ERROR_INVALID_VALUE;
    *event = work->event;
    return CUDA_SUCCESS;
}

CUresult set_event(CUgraphNode node, bool is_record, CUevent event) {
    Work work;
    const CUresult made = make_event(event, is_record, &work);
    return made == CUDA_SUCCESS ? replace(node, std::move(work)) : made;
}

CUresult allocate(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters, AllocateWork* work) {
    const CUmemPoolProps& pool = parameters.poolProps;
    if (parameters.bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    work->parameters = parameters;
    return backend().allocate(pool.location.id, parameters.bytesize, &work->parameters.dptr);
}

CUresult add_allocation(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data,
                        size_t count, const CUDA_MEM_ALLOC_NODE_PARAMS& parameters, CUdeviceptr* address) {
    AllocateWork work;
    if (const CUresult allocated = allocate(parameters, &work); allocated != CUDA_SUCCESS) return allocated;
    const CUresult added = add(made, graph, after, data, count, work);
    if (added == CUDA_SUCCESS) {
        *address = work.parameters.dptr;
    } else {
        backend().release(work.parameters.dptr);
    }
    return added;
}

CUresult add_child(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data,
                   size_t count, CUgraph child) {
    ChildWork work;
    {
        const StoreLock lock(store().mutex);
        const Graph* original = store().graph(child);
        if (original == nullptr || child == graph) return CUDA_ERROR_INVALID_VALUE;
        work.graph = original->clone();
        work.graph->belongs_to_node = true;
        work.graph->handle = store().next(Store::kGraph);
        store().graphs[work.graph->handle] = work.graph;
    }
    const std::shared_ptr<Graph> copy = work.graph;
    const CUresult added = add(made, graph, after, data, count, std::move(work));
    if (added == CUDA_SUCCESS) return added;
    const StoreLock lock(store().mutex);
    store().graphs.erase(copy->handle);
    return added;
}

CUresult add_free(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data, size_t count,
                  CUdeviceptr address) {
    const FreeWork work{address};
    if (const CUresult checked = backend().check(work); checked != CUDA_SUCCESS) return checked;
    return add(made, graph, after, data, count, work);
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    FunctionShape shape;
    if (const CUresult good = make_kernel(*parameters, &work, &shape); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work), std::move(shape));
}
CUresult cuGraphAddKernelNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widen(*parameters);
    return cuGraphAddKernelNode_v2(made, graph, after, count, &wide);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMCPY3D* copy, CUcontext) {
    Work work;
    if (const CUresult good = make_copy(copy, &work); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work));
}

CUresult cuGraphAddMemsetNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext) {
    Work work;
    if (const CUresult good = make_fill(fill, &work); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work));
}

CUresult cuGraphAddHostNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                            const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    if (const CUresult good = make_host(parameters->fn, parameters->userData, &work); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work));
}

CUresult cuGraphAddEmptyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count) {
    return add(made, graph, after, nullptr, count, EmptyWork{});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                  CUgraph child) {
    return add_child(made, graph, after, nullptr, count, child);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                   CUevent event) {
    Work work;
    if (const CUresult good = make_event(event, true, &work); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                 CUevent event) {
    Work work;
    if (const CUresult good = make_event(event, false, &work); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, nullptr, count, std::move(work));
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_allocation(made, graph, after, nullptr, count, *parameters, &parameters->dptr);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                               CUdeviceptr address) {
    return add_free(made, graph, after, nullptr, count, address);
}

CUresult cuGraphAddNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data,
                           size_t count, CUgraphNodeParams* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (parameters->type) {
        case CU_GRAPH_NODE_TYPE_GRAPH: return add_child(made, graph, after, data, count, parameters->graph.graph);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            CUDA_MEM_ALLOC_NODE_PARAMS allocation;
            std::memcpy(&allocation, &parameters->alloc, sizeof allocation);
            return add_allocation(made, graph, after, data, count, allocation, &parameters->alloc.dptr);
        }
        case CU_GRAPH_NODE_TYPE_MEM_FREE: return add_free(made, graph, after, data, count, parameters->free.dptr);
        default: break;
    }
    Work work;
    FunctionShape shape;
    if (const CUresult good = make_any(*parameters, &work, &shape); good != CUDA_SUCCESS) return good;
    return add(made, graph, after, data, count, std::move(work), std::move(shape));
}
CUresult cuGraphAddNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count,
                        CUgraphNodeParams* parameters) {
    return cuGraphAddNode_v2(made, graph, after, nullptr, count, parameters);
}

// ------------------------------------------------------------------------------------------------------------- kernels

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters) {
    const StoreLock lock(store().mutex);
    Node* node;
    KernelWork* work;
    if (const CUresult found = find_work(handle, parameters, &node, &work); found != CUDA_SUCCESS) return found;
    // The arrays belong to the node, and live until it is changed or destroyed.
    node->pointers.clear();
    for (const ParameterShape& parameter : node->shape.parameters)
        node->pointers.push_back(work->parameters.data() + parameter.offset);
    *parameters = {};
    parameters->func = work->function;
    parameters->gridDimX = work->grid[0];
    parameters->gridDimY = work->grid[1];
    parameters->gridDimZ = work->grid[2];
    parameters->blockDimX = work->block[0];
    parameters->blockDimY = work->block[1];
    parameters->blockDimZ = work->block[2];
    parameters->sharedMemBytes = work->shared_bytes;
    parameters->kernelParams = node->pointers.empty() ? nullptr : node->pointers.data();
    parameters->kern = work->kernel;
    return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    CUDA_KERNEL_NODE_PARAMS wide;
    const CUresult got = cuGraphKernelNodeGetParams_v2(node, parameters != nullptr ? &wide : nullptr);
    if (got == CUDA_SUCCESS) std::memcpy(parameters, &wide, sizeof *parameters);
    return got;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    FunctionShape shape;
    if (const CUresult good = make_kernel(*parameters, &work, &shape); good != CUDA_SUCCESS) return good;
    return replace(node, std::move(work), std::move(shape));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS wide = widen(*parameters);
    return cuGraphKernelNodeSetParams_v2(node, &wide);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value) {
    const StoreLock lock(store().mutex);
    Node* node;
    KernelWork* work;
    if (const CUresult found = find_work(handle, value, &node, &work); found != CUDA_SUCCESS) return found;
    std::memset(value, 0, sizeof *value);
    for (const CUlaunchAttribute& attribute : work->attributes)
        if (attribute.id == id) *value = attribute.value;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
    const StoreLock lock(store().mutex);
    Node* node;
    KernelWork* work;
    if (const CUresult found = find_work(handle, value, &node, &work); found != CUDA_SUCCESS) return found;
    std::erase_if(work->attributes, [&](const CUlaunchAttribute& attribute) { return attribute.id == id; });
    CUlaunchAttribute attribute{};
    attribute.id = id;
    attribute.value = *value;
    work->attributes.push_back(attribute);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    const StoreLock lock(store().mutex);
    Node* node;
    KernelWork *target, *source;
    if (const CUresult found = find_work(to, &node, &node, &target); found != CUDA_SUCCESS) return found;
    if (const CUresult found = find_work(from, &node, &node, &source); found != CUDA_SUCCESS) return found;
    if (target != source) target->attributes = source->attributes;
    return CUDA_SUCCESS;
}

// -------------------------------------------------------------------------------------------------------------- others

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* copy) {
    const StoreLock lock(store().mutex);
    Node* node;
    CopyWork* work;
    if (const CUresult found = find_work(handle, copy, &node, &work); found != CUDA_SUCCESS) return found;
    *copy = work->copy;
    return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
    Work work;
    const CUresult good = make_copy(copy, &work);
    return good == CUDA_SUCCESS ? replace(node, std::move(work)) : good;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* fill) {
    const StoreLock lock(store().mutex);
    Node* node;
    FillWork* work;
    if (const CUresult found = find_work(handle, fill, &node, &work); found != CUDA_SUCCESS) return found;
    *fill = work->fill;
    return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill) {
    Work work;
    const CUresult good = make_fill(fill, &work);
    return good == CUDA_SUCCESS ? replace(node, std::move(work)) : good;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* parameters) {
    const StoreLock lock(store().mutex);
    Node* node;
    HostWork* work;
    if (const CUresult found = find_work(handle, parameters, &node, &work); found != CUDA_SUCCESS) return found;
    *parameters = {work->function, work->data};
    return CUDA_SUCCESS;
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    const CUresult good = make_host(parameters->fn, parameters->userData, &work);
    return good == CUDA_SUCCESS ? replace(node, std::move(work)) : good;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
    const StoreLock lock(store().mutex);
    Node* node;
    ChildWork* work;
    if (const CUresult found = find_work(handle, graph, &node, &work); found != CUDA_SUCCESS) return found;
    *graph = reinterpret_cast<CUgraph>(work->graph->handle);
    return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) { return get_event(node, true, event); }
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) { return set_event(node, true, event); }
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) { return get_event(node, false, event); }
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) { return set_event(node, false, event); }

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    const StoreLock lock(store().mutex);
    Node* node;
    AllocateWork* work;
    if (const CUresult found = find_work(handle, parameters, &node, &work); found != CUDA_SUCCESS) return found;
    *parameters = work->parameters;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
    const StoreLock lock(store().mutex);
    Node* node;
    FreeWork* work;
    if (const CUresult found = find_work(handle, address, &node, &work); found != CUDA_SUCCESS) return found;
    *address = work->address;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    FunctionShape shape;
    if (const CUresult good = make_any(*parameters, &work, &shape); good != CUDA_SUCCESS) return good;
    return replace(node, std::move(work), std::move(shape));
}

CUresult cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams* parameters) {
    return cuGraphNodeSetParams(node, parameters);
}

}  // namespace weft::graph
