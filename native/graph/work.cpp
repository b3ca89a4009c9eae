#include "graph/work.h"

#include <cstring>

#include "graph/backend.h"

namespace weft::graph {
namespace {

constexpr std::size_t kMaxParameterBytes = 32764;

// The packed parameters of `extra`.
CUresult read_extra(void** extra, std::vector<std::byte>* packed) {
    const std::byte* buffer = nullptr;
    std::size_t size = 0;
    for (int i = 0; i < 4 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = static_cast<const std::byte*>(extra[i + 1]);
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != nullptr) {
            size = *static_cast<const std::size_t*>(extra[i + 1]);
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if ((buffer == nullptr && size != 0) || size > kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
    packed->assign(buffer, buffer + size);
    return CUDA_SUCCESS;
}

CUresult pack(const CUDA_KERNEL_NODE_PARAMS& parameters, const FunctionShape& shape, std::vector<std::byte>* packed) {
    if (parameters.extra != nullptr) {
        if (parameters.kernelParams != nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult read = read_extra(parameters.extra, packed); read != CUDA_SUCCESS) return read;
        return packed->size() >= shape.parameter_bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (parameters.kernelParams == nullptr && !shape.parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
    packed->assign(shape.parameter_bytes, std::byte{0});
    for (std::size_t i = 0; i < shape.parameters.size(); ++i) {
        if (parameters.kernelParams[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(packed->data() + shape.parameters[i].offset, parameters.kernelParams[i],
                    shape.parameters[i].size_bytes);
    }
    return CUDA_SUCCESS;
}

CUresult accept(Work made, Work* work) {
    const CUresult checked = backend().check(made);
    if (checked == CUDA_SUCCESS) *work = std::move(made);
    return checked;
}

template <typename T>
bool is_same_bytes(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

bool is_same_kernel(const KernelWork& a, const KernelWork& b) {
    return a.function == b.function && is_same_bytes(a.grid, b.grid) && is_same_bytes(a.block, b.block) &&
           a.shared_bytes == b.shared_bytes && a.parameters == b.parameters &&
           a.attributes.size() == b.attributes.size() &&
           (a.attributes.empty() || std::memcmp(a.attributes.data(), b.attributes.data(),
                                                a.attributes.size() * sizeof(CUlaunchAttribute)) == 0);
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters) {
    CUDA_KERNEL_NODE_PARAMS wide{};
    std::memcpy(&wide, &parameters, sizeof parameters);  // the newer struct begins like the older one
    return wide;
}

CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work, FunctionShape* shape) {
    KernelWork kernel;
    kernel.function = parameters.func;
    // With a function the fields behind it are not read: programs hand in the older struct here.
    if (kernel.function == nullptr) kernel.kernel = parameters.kern;
    kernel.grid[0] = parameters.gridDimX;
    kernel.grid[1] = parameters.gridDimY;
    kernel.grid[2] = parameters.gridDimZ;
    kernel.block[0] = parameters.blockDimX;
    kernel.block[1] = parameters.blockDimY;
    kernel.block[2] = parameters.blockDimZ;
    kernel.shared_bytes = parameters.sharedMemBytes;
    if (const CUresult known = backend().describe(&kernel, shape); known != CUDA_SUCCESS) return known;
    if (const CUresult packed = pack(parameters, *shape, &kernel.parameters); packed != CUDA_SUCCESS) return packed;
    return accept(std::move(kernel), work);
}

CUresult make_copy(const CUDA_MEMCPY3D* copy, Work* work) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return accept(CopyWork{*copy}, work);
}

CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS* fill, Work* work) {
    if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const unsigned unit = fill->elementSize;
    if ((unit != 1 && unit != 2 && unit != 4) || fill->width == 0 || fill->height == 0 || fill->dst % unit != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fill->height > 1 && (fill->pitch < fill->width * unit || fill->pitch % unit != 0))
        return CUDA_ERROR_INVALID_VALUE;
    return accept(FillWork{*fill}, work);
}

CUresult make_host(CUhostFn function, void* data, Work* work) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return accept(HostWork{function, data}, work);
}

CUresult make_event(CUevent event, bool is_record, Work* work) { return accept(EventWork{event, is_record}, work); }

CUresult make_any(const CUgraphNodeParams& parameters, Work* work, FunctionShape* shape) {
    switch (parameters.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS kernel;
            static_assert(sizeof kernel == sizeof parameters.kernel);
            std::memcpy(&kernel, &parameters.kernel, sizeof kernel);
            return make_kernel(kernel, work, shape);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: return make_copy(&parameters.memcpy.copyParams, work);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS fill;
            std::memcpy(&fill, &parameters.memset, sizeof fill);
            return make_fill(&fill, work);
        }
        case CU_GRAPH_NODE_TYPE_HOST: return make_host(parameters.host.fn, parameters.host.userData, work);
        case CU_GRAPH_NODE_TYPE_EMPTY: *work = EmptyWork{}; return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return make_event(parameters.eventWait.event, false, work);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return make_event(parameters.eventRecord.event, true, work);
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

bool is_same(const Work& a, const Work& b) {
    if (a.index() != b.index()) return false;
    if (const auto* kernel = std::get_if<KernelWork>(&a)) return is_same_kernel(*kernel, *std::get_if<KernelWork>(&b));
    if (const auto* copy = std::get_if<CopyWork>(&a)) return is_same_bytes(copy->copy, std::get_if<CopyWork>(&b)->copy);
    if (const auto* fill = std::get_if<FillWork>(&a)) return is_same_bytes(fill->fill, std::get_if<FillWork>(&b)->fill);
    if (const auto* host = std::get_if<HostWork>(&a))
        return host->function == std::get_if<HostWork>(&b)->function && host->data == std::get_if<HostWork>(&b)->data;
    if (const auto* event = std::get_if<EventWork>(&a))
        return event->event == std::get_if<EventWork>(&b)->event &&
               event->is_record == std::get_if<EventWork>(&b)->is_record;
    return true;
}

}  // namespace weft::graph
