// The driver calls on graphs, which are written once for all drivers (graph/calls.h).
#include "graph/calls.h"
#include "swgpu/driver/api.h"

#define WEFT_GRAPH_EXPORT(name, parameters, arguments) \
    WEFT_API CUresult name parameters {                \
        WEFT_TRY(weft::swdriver::check_ready());       \
        return weft::graph::name arguments;            \
    }
WEFT_GRAPH_CALLS(WEFT_GRAPH_EXPORT)

WEFT_API CUresult cuDeviceGraphMemTrim(CUdevice device) {
    WEFT_TRY(weft::swdriver::check_ready());
    return weft::swdriver::find_device(device) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
