// Launches, and the driver calls that have a generated frame of their own. See session.h.
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "executor/inventory.h"
#include "executor/launch_attributes.h"
#include "executor/session.h"

namespace weft::executor {

bool is_allowed_attribute(CUlaunchAttributeID id) {
    switch (id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // holds a device address
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        case CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE:
        case CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE: return true;
        default: return false;
    }
}

Outcome Session::on_launch(Arrival& arrival) {
    const auto launch = fields_of<wire::Launch>(arrival);
    const auto tail = tail_of<wire::Launch>(arrival);
    const std::size_t attribute_bytes = launch.attribute_count * sizeof(CUlaunchAttribute);
    if (launch.attribute_count > kMaxLaunchAttributes || attribute_bytes > tail.size() ||
        launch.parameter_bytes > tail.size() - attribute_bytes) {
        return bad_frame(arrival, "attributes or parameters are cut off");
    }
    const ModuleState* module = modules_.find(launch.module);
    if (module == nullptr || module->context != arrival.context || launch.function >= module->functions.size()) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    const FunctionState& function = module->functions[launch.function];
    if (launch.parameter_bytes < function.parameter_bytes) {
        refuse(arrival, CUDA_ERROR_INVALID_VALUE, "kernel " + function.name + ": too few parameter bytes");
        return Outcome::submitted;
    }
    set_current(*arrival.context);
    ++counters_.launches;
    std::size_t size = function.parameter_bytes;
    void* parameters = const_cast<std::byte*>(tail.data() + attribute_bytes);
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    void** arguments = size != 0 ? extra : nullptr;
    const CUresult result =
        launch.attribute_count != 0
            ? launch_with_attributes(arrival, launch, function.handle, tail.first(attribute_bytes), arguments)
            : driver_.cuLaunchKernel(function.handle, launch.grid_x, launch.grid_y, launch.grid_z, launch.block_x,
                                     launch.block_y, launch.block_z, launch.shared_bytes, arrival.stream->handle,
                                     nullptr, arguments);
    if (result == CUDA_SUCCESS) [[likely]] {
        submitted(*arrival.stream);
    } else {
        refuse(arrival, result, "kernel " + function.name);
    }
    return Outcome::submitted;
}

CUresult Session::launch_with_attributes(const Arrival& arrival, const wire::Launch& launch, CUfunction function,
                                         std::span<const std::byte> attribute_bytes, void** arguments) {
    if (driver_.cuLaunchKernelEx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    std::array<CUlaunchAttribute, kMaxLaunchAttributes> attributes;
    std::memcpy(attributes.data(), attribute_bytes.data(), attribute_bytes.size());
    for (std::uint32_t i = 0; i < launch.attribute_count; ++i) {
        if (!is_allowed_attribute(attributes[i].id)) return CUDA_ERROR_NOT_SUPPORTED;
    }
    const CUlaunchConfig config = {
        launch.grid_x,  launch.grid_y,       launch.grid_z,          launch.block_x,    launch.block_y,
        launch.block_z, launch.shared_bytes, arrival.stream->handle, attributes.data(), launch.attribute_count};
    return driver_.cuLaunchKernelEx(&config, function, nullptr, arguments);
}

// ---------------------------------------------------------------------------------------------------- generated calls

Outcome Session::on_call(Arrival& arrival) {
    const CallRunner runner = find_call_runner(arrival.header.opcode);
    set_current(*arrival.context);
    call_context_ = arrival.context;
    CUresult result = CUDA_SUCCESS;
    ByteWriter tail;
    const Status status = runner(*this, driver_, arrival.frame, &result, tail);
    call_context_ = nullptr;
    if (!status) return bad_frame(arrival, status.text());
    if (result == CUDA_SUCCESS && arrival.stream != nullptr) submitted(*arrival.stream);
    if ((arrival.header.flags & wire::kFlagWaiting) != 0) {
        completion_.tell_implied();
        reply(arrival, result, tail.bytes());
    } else if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
    }
    return Outcome::submitted;
}

CUresult Session::stream(std::uint32_t number, CUstream* out) {
    const StreamState* found = find_stream(*call_context_, number);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *out = found->handle;
    return CUDA_SUCCESS;
}

CUresult Session::event(std::uint32_t number, CUevent* out) {
    const EventState* found = events_.find(number);
    if (found == nullptr || found->context != call_context_) return CUDA_ERROR_INVALID_HANDLE;
    *out = found->handle->get();
    return CUDA_SUCCESS;
}

CUresult Session::function(std::uint32_t module, std::uint32_t index, CUfunction* out) {
    const ModuleState* found = modules_.find(module);
    if (found == nullptr || found->context != call_context_ || index >= found->functions.size())
        return CUDA_ERROR_INVALID_HANDLE;
    *out = found->functions[index].handle;
    return CUDA_SUCCESS;
}

}  // namespace weft::executor
