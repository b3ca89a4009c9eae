// Functions: answered from the module's description; attributes that a program sets are kept here and sent on.
#include "gen/shim_api.h"
#include "shim/library.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find(CUfunction handle, Function** function) {
    Context* context = current_context();
    if (Kernel* kernel = kernels().find(handle); kernel != nullptr) {
        if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
        return kernel_function(*kernel, *context, function);
    }
    *function = Runtime::get()->functions.find(handle);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return *value = function->max_dynamic_shared_bytes, CUDA_SUCCESS;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return *value = function->carveout, CUDA_SUCCESS;
    const auto found = function->info->attributes.get(static_cast<std::size_t>(attribute));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *value = *found;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    const Device& device = *function->module->context->device;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        const int most =
            device.info.attributes.get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).value_or(48 * 1024);
        const int fixed = function->info->attributes.get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).value_or(0);
        if (value < 0 || value > most - fixed) return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared_bytes = value;
    } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
    } else if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || attribute >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return Runtime::get()->session().send<wire::FuncSetAttribute>(
        function->module->context->number, 0, [&](auto& frame, std::byte*) {
            frame.module = function->module->number;
            frame.function = function->index;
            frame.attrib = static_cast<std::int32_t>(attribute);
            frame.value = value;
        });
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    *name = function->info->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    if (function->module->handle == 0) return CUDA_ERROR_NOT_FOUND;
    *module = reinterpret_cast<CUmodule>(function->module->handle);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* size) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    const auto& parameters = function->info->parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size_bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    Function* function;
    if (const CUresult result = find(handle, &function); result != CUDA_SUCCESS) return result;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
    Function* function;
    return find(handle, &function);
}

}  // namespace weft::shim::api
