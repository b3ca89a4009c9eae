// From the structs of the driver API to what a node does, and back.
#pragma once

#include "graph/graph.h"

namespace weft::graph {

// Each checks as the driver does at the call. *shape: of a kernel's parameters.
CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work, FunctionShape* shape);
CUresult make_copy(const CUDA_MEMCPY3D* copy, Work* work);
CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS* fill, Work* work);
CUresult make_host(CUhostFn function, void* data, Work* work);
CUresult make_event(CUevent event, bool is_record, Work* work);
// Of the types that need nothing else; NOT_SUPPORTED for the others.
CUresult make_any(const CUgraphNodeParams& parameters, Work* work, FunctionShape* shape);

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters);
// True if both do the same with the same arguments.
bool is_same(const Work& a, const Work& b);

}  // namespace weft::graph
