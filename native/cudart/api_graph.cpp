// Graph nodes whose parameters have another form in the driver: kernels, copies, fills. Everything else of graphs is a
// forward.
#include "cudart/copy.h"
#include "cudart/entry.h"
#include "cudart/registry.h"

namespace weft::cudart::api {
namespace {

// Where a new node goes.
struct Place {
    CUgraphNode* node;
    CUgraph graph;
    const CUgraphNode* dependencies;
    std::size_t count;
};

CUcontext current() {
    CUcontext context = nullptr;
    (void)driver().cuCtxGetCurrent(&context);
    return context;
}

cudaError_t to_driver(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to) {
    if (from == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    *to = {};
    WEFT_TRY(resolve_function(from->func, &to->func));
    to->gridDimX = from->gridDim.x;
    to->gridDimY = from->gridDim.y;
    to->gridDimZ = from->gridDim.z;
    to->blockDimX = from->blockDim.x;
    to->blockDimY = from->blockDim.y;
    to->blockDimZ = from->blockDim.z;
    to->sharedMemBytes = from->sharedMemBytes;
    to->kernelParams = from->kernelParams;
    to->extra = from->extra;
    return cudaSuccess;
}

cudaError_t to_driver(const cudaMemsetParams* from, CUDA_MEMSET_NODE_PARAMS* to) {
    if (from == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    *to = {};
    to->dst = device_address(from->dst);
    to->pitch = from->pitch;
    to->value = from->value;
    to->elementSize = from->elementSize;
    to->width = from->width;
    to->height = from->height;
    return cudaSuccess;
}

cudaError_t to_driver(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* to) {
    if (from == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    return to_driver_copy(*from, to);
}

// A copy of bytes as a box of one row.
cudaError_t row_copy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUDA_MEMCPY3D* out) {
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = {const_cast<void*>(from), count, count, 1};
    copy.dstPtr = {to, count, count, 1};
    copy.extent = {count, 1, 1};
    copy.kind = kind;
    return to_driver(&copy, out);
}

struct SymbolRange {
    const void* symbol;
    std::size_t offset, count;
};

cudaError_t copy_to_symbol(const SymbolRange& to, const void* from, cudaMemcpyKind kind, CUDA_MEMCPY3D* out) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyHostToDevice));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(to.symbol, to.offset, to.count, &address));
    return row_copy(to_pointer(address), from, to.count, kind, out);
}

cudaError_t copy_from_symbol(void* to, const SymbolRange& from, cudaMemcpyKind kind, CUDA_MEMCPY3D* out) {
    WEFT_TRY(check_symbol_kind(kind, cudaMemcpyDeviceToHost));
    CUdeviceptr address;
    WEFT_TRY(symbol_range(from.symbol, from.offset, from.count, &address));
    return row_copy(to, to_pointer(address), from.count, kind, out);
}

cudaError_t add_copy(const Place& place, const CUDA_MEMCPY3D& copy) {
    return to_error(
        driver().cuGraphAddMemcpyNode(place.node, place.graph, place.dependencies, place.count, &copy, current()));
}

cudaError_t set_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D& copy) {
    return to_error(driver().cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current()));
}

cudaError_t set_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy) {
    return to_error(driver().cuGraphMemcpyNodeSetParams(node, &copy));
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaKernelNodeParams* params) {
    CUDA_KERNEL_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphAddKernelNode_v2(node, graph, dependencies, count, &mine));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
    if (params == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_KERNEL_NODE_PARAMS mine{};
    WEFT_TRY(driver().cuGraphKernelNodeGetParams_v2(node, &mine));
    const void* host = find_host_function(mine.func);
    *params = {};
    params->func = host != nullptr ? const_cast<void*>(host) : static_cast<void*>(mine.func);
    params->gridDim = {mine.gridDimX, mine.gridDimY, mine.gridDimZ};
    params->blockDim = {mine.blockDimX, mine.blockDimY, mine.blockDimZ};
    params->sharedMemBytes = mine.sharedMemBytes;
    params->kernelParams = mine.kernelParams;
    params->extra = mine.extra;
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
    CUDA_KERNEL_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphKernelNodeSetParams_v2(node, &mine));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
    CUDA_KERNEL_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphExecKernelNodeSetParams_v2(exec, node, &mine));
}

// The majors name the two nodes in different order; the driver takes the destination first.
#if WEFT_CUDART_MAJOR == 12
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t source, cudaGraphNode_t target) {
#else
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t target, cudaGraphNode_t source) {
#endif
    WEFT_TRY(enter());
    return to_error(driver().cuGraphKernelNodeCopyAttributes(target, source));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemsetParams* params) {
    CUDA_MEMSET_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphAddMemsetNode(node, graph, dependencies, count, &mine, current()));
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
    if (params == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMSET_NODE_PARAMS mine{};
    WEFT_TRY(driver().cuGraphMemsetNodeGetParams(node, &mine));
    *params = {to_pointer(mine.dst), mine.pitch, mine.value, mine.elementSize, mine.width, mine.height};
    return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
    CUDA_MEMSET_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphMemsetNodeSetParams(node, &mine));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
    CUDA_MEMSET_NODE_PARAMS mine;
    WEFT_TRY(to_driver(params, &mine));
    return to_error(driver().cuGraphExecMemsetNodeSetParams(exec, node, &mine, current()));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemcpy3DParms* params) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver(params, &mine));
    return add_copy({node, graph, dependencies, count}, mine);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     std::size_t count, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(row_copy(to, from, bytes, kind, &mine));
    return add_copy({node, graph, dependencies, count}, mine);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, std::size_t count, const void* symbol,
                                           const void* from, std::size_t bytes, std::size_t offset,
                                           cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_to_symbol({symbol, offset, bytes}, from, kind, &mine));
    return add_copy({node, graph, dependencies, count}, mine);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, std::size_t count, void* to,
                                             const void* symbol, std::size_t bytes, std::size_t offset,
                                             cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_from_symbol(to, {symbol, offset, bytes}, kind, &mine));
    return add_copy({node, graph, dependencies, count}, mine);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
    if (params == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_MEMCPY3D mine{};
    WEFT_TRY(driver().cuGraphMemcpyNodeGetParams(node, &mine));
    return from_driver_copy(mine, params);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver(params, &mine));
    return set_copy(node, mine);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, std::size_t bytes,
                                           cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(row_copy(to, from, bytes, kind, &mine));
    return set_copy(node, mine);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* from,
                                                 std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_to_symbol({symbol, offset, bytes}, from, kind, &mine));
    return set_copy(node, mine);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol,
                                                   std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_from_symbol(to, {symbol, offset, bytes}, kind, &mine));
    return set_copy(node, mine);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(to_driver(params, &mine));
    return set_copy(exec, node, mine);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               std::size_t bytes, cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(row_copy(to, from, bytes, kind, &mine));
    return set_copy(exec, node, mine);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* from, std::size_t bytes, std::size_t offset,
                                                     cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_to_symbol({symbol, offset, bytes}, from, kind, &mine));
    return set_copy(exec, node, mine);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                       const void* symbol, std::size_t bytes, std::size_t offset,
                                                       cudaMemcpyKind kind) {
    CUDA_MEMCPY3D mine;
    WEFT_TRY(copy_from_symbol(to, {symbol, offset, bytes}, kind, &mine));
    return set_copy(exec, node, mine);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* params,
                                           CUstream default_stream) {
    if (params == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
    if (params->uploadStream == nullptr) params->uploadStream = default_stream;
    return to_error(
        driver().cuGraphInstantiateWithParams(exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params)));
}

}  // namespace weft::cudart::api
