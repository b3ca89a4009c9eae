// What graphs need of the driver that they are part of. Each library that links this part defines backend().
#pragma once

#include "graph/graph.h"

namespace weft::graph {

class Backend {
  public:
    virtual ~Backend() = default;
    // The parameters of a function (or of a kernel, which is resolved: work->function is set).
    virtual CUresult describe(KernelWork* work, FunctionShape* shape) = 0;
    // What a driver reports about parameters at the call.
    virtual CUresult check(const Work& work) = 0;
    // Memory of allocation nodes.
    virtual CUresult allocate(CUdevice device, std::size_t bytes, CUdeviceptr* address) = 0;
    virtual void release(CUdeviceptr address) = 0;

    virtual CUresult instantiate(Exec& exec) = 0;
    // Node `index` of the plan has changed: its work, or whether it is enabled.
    virtual CUresult update(Exec& exec, std::uint32_t index, bool work_changed) = 0;
    virtual CUresult launch(Exec& exec, CUstream stream) = 0;
    virtual CUresult upload(Exec& exec, CUstream stream) = 0;
};
Backend& backend();

}  // namespace weft::graph
