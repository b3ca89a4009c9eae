// The driver calls on graphs that need no stream, written once for every driver. The libraries that link this part
// export them: the list below makes their definitions. Arguments are checked as the driver API manual says.
#pragma once

#include "gen/cuda_abi.h"

// clang-format off
#define WEFT_GRAPH_CALLS(X) \
    X(cuGraphCreate, (CUgraph* graph, unsigned int flags), (graph, flags)) \
    X(cuGraphDestroy, (CUgraph graph), (graph)) \
    X(cuGraphClone, (CUgraph* clone, CUgraph original), (clone, original)) \
    X(cuGraphNodeFindInClone, (CUgraphNode* found, CUgraphNode original, CUgraph clone), (found, original, clone)) \
    X(cuGraphDestroyNode, (CUgraphNode node), (node)) \
    X(cuGraphGetNodes, (CUgraph graph, CUgraphNode* nodes, size_t* count), (graph, nodes, count)) \
    X(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode* nodes, size_t* count), (graph, nodes, count)) \
    X(cuGraphGetEdges, (CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count), (graph, from, to, count)) \
    X(cuGraphGetEdges_v2, (CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count), (graph, from, to, data, count)) \
    X(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode* nodes, size_t* count), (node, nodes, count)) \
    X(cuGraphNodeGetDependencies_v2, (CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (node, nodes, data, count)) \
    X(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode* nodes, size_t* count), (node, nodes, count)) \
    X(cuGraphNodeGetDependentNodes_v2, (CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count), (node, nodes, data, count)) \
    X(cuGraphAddDependencies, (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to, count)) \
    X(cuGraphAddDependencies_v2, (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count), (graph, from, to, data, count)) \
    X(cuGraphRemoveDependencies, (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count), (graph, from, to, count)) \
    X(cuGraphRemoveDependencies_v2, (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count), (graph, from, to, data, count)) \
    X(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType* type), (node, type)) \
    X(cuGraphDebugDotPrint, (CUgraph graph, const char* path, unsigned int flags), (graph, path, flags)) \
    X(cuGraphAddKernelNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters), (made, graph, after, count, parameters)) \
    X(cuGraphAddKernelNode_v2, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters), (made, graph, after, count, parameters)) \
    X(cuGraphAddMemcpyNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMCPY3D* copy, CUcontext context), (made, graph, after, count, copy, context)) \
    X(cuGraphAddMemsetNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context), (made, graph, after, count, fill, context)) \
    X(cuGraphAddHostNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_HOST_NODE_PARAMS* parameters), (made, graph, after, count, parameters)) \
    X(cuGraphAddEmptyNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count), (made, graph, after, count)) \
    X(cuGraphAddChildGraphNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child), (made, graph, after, count, child)) \
    X(cuGraphAddEventRecordNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event), (made, graph, after, count, event)) \
    X(cuGraphAddEventWaitNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event), (made, graph, after, count, event)) \
    X(cuGraphAddMemAllocNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters), (made, graph, after, count, parameters)) \
    X(cuGraphAddMemFreeNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr address), (made, graph, after, count, address)) \
    X(cuGraphAddNode, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams* parameters), (made, graph, after, count, parameters)) \
    X(cuGraphAddNode_v2, (CUgraphNode* made, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* parameters), (made, graph, after, data, count, parameters)) \
    X(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters), (node, parameters)) \
    X(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters), (node, parameters)) \
    X(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters), (node, parameters)) \
    X(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters), (node, parameters)) \
    X(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), (to, from)) \
    X(cuGraphKernelNodeGetAttribute, (CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value), (node, id, value)) \
    X(cuGraphKernelNodeSetAttribute, (CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value), (node, id, value)) \
    X(cuGraphMemcpyNodeGetParams, (CUgraphNode node, CUDA_MEMCPY3D* copy), (node, copy)) \
    X(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* copy), (node, copy)) \
    X(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* fill), (node, fill)) \
    X(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill), (node, fill)) \
    X(cuGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters), (node, parameters)) \
    X(cuGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters), (node, parameters)) \
    X(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph* graph), (node, graph)) \
    X(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent* event), (node, event)) \
    X(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event), (node, event)) \
    X(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent* event), (node, event)) \
    X(cuGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event), (node, event)) \
    X(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters), (node, parameters)) \
    X(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr* address), (node, address)) \
    X(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* parameters), (node, parameters)) \
    X(cuGraphNodeSetParams_v2, (CUgraphNode node, CUgraphNodeParams* parameters), (node, parameters)) \
    X(cuGraphInstantiate, (CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes), (made, graph, error_node, log, log_bytes)) \
    X(cuGraphInstantiate_v2, (CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes), (made, graph, error_node, log, log_bytes)) \
    X(cuGraphInstantiateWithFlags, (CUgraphExec* made, CUgraph graph, unsigned long long flags), (made, graph, flags)) \
    X(cuGraphInstantiateWithParams, (CUgraphExec* made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters), (made, graph, parameters)) \
    X(cuGraphExecDestroy, (CUgraphExec exec), (exec)) \
    X(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t* flags), (exec, flags)) \
    X(cuGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result), (exec, graph, error_node, result)) \
    X(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info), (exec, graph, info)) \
    X(cuGraphExecKernelNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters), (exec, node, parameters)) \
    X(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters), (exec, node, parameters)) \
    X(cuGraphExecMemcpyNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context), (exec, node, copy, context)) \
    X(cuGraphExecMemsetNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context), (exec, node, fill, context)) \
    X(cuGraphExecHostNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters), (exec, node, parameters)) \
    X(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child), (exec, node, child)) \
    X(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event)) \
    X(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event)) \
    X(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters), (exec, node, parameters)) \
    X(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int enabled), (exec, node, enabled)) \
    X(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int* enabled), (exec, node, enabled)) \
    X(cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream)) \
    X(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream)) \
    X(cuUserObjectCreate, (CUuserObject* made, void* data, CUhostFn destroy, unsigned int references, unsigned int flags), (made, data, destroy, references, flags)) \
    X(cuUserObjectRetain, (CUuserObject object, unsigned int count), (object, count)) \
    X(cuUserObjectRelease, (CUuserObject object, unsigned int count), (object, count)) \
    X(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags), (graph, object, count, flags)) \
    X(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned int count), (graph, object, count))
// clang-format on

namespace weft::graph {

#define WEFT_GRAPH_DECLARE(name, parameters, arguments) CUresult name parameters;
WEFT_GRAPH_CALLS(WEFT_GRAPH_DECLARE)
#undef WEFT_GRAPH_DECLARE

}  // namespace weft::graph
