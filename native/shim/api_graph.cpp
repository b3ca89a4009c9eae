// The driver calls on graphs, which are written once for all drivers (graph/calls.h).
#include "gen/shim_api.h"
#include "graph/calls.h"
#include "shim/runtime.h"

namespace weft::shim::api {

#define WEFT_GRAPH_DEFINE(name, parameters, arguments) \
    CUresult name parameters { return graph::name arguments; }
WEFT_GRAPH_CALLS(WEFT_GRAPH_DEFINE)
#undef WEFT_GRAPH_DEFINE

namespace {

bool is_device(CUdevice device) { return Runtime::get()->device(device) != nullptr; }

}  // namespace

// Memory of graphs is allocated with their nodes, and given back with the graph: there is nothing to trim.
CUresult cuDeviceGraphMemTrim(CUdevice device) { return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }

}  // namespace weft::shim::api
