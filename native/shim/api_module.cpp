// Modules: loading asks the executor once; every later question is answered from its description.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/fd.h"
#include "gen/shim_api.h"
#include "shim/module_loader.h"
#include "shim/read_file.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find_module(CUmodule handle, Module** module) {
    *module = Runtime::get()->modules.find(handle);
    return *module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto inspected = inspect_image(image);
    if (!inspected) return CUDA_ERROR_INVALID_IMAGE;
    JitRequest jit(count, options, values);
    std::shared_ptr<Module> module;
    if (const CUresult loaded = load_module(*context, hash_image(*inspected), jit, &module); loaded != CUDA_SUCCESS)
        return loaded;
    module->handle = Runtime::get()->modules.insert(module);
    *handle = reinterpret_cast<CUmodule>(module->handle);
    return module->handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
    return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* handle, const void* image) {
    return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* handle, const char* path) {
    std::vector<char> bytes;
    if (const CUresult read = read_file(path, &bytes); read != CUDA_SUCCESS) return read;
    return cuModuleLoadDataEx(handle, bytes.data(), 0, nullptr, nullptr);
}

CUresult cuModuleUnload(CUmodule handle) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = find_module(handle, &module); result != CUDA_SUCCESS) return result;
    unload_module(*module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = find_module(module_handle, &module); result != CUDA_SUCCESS) return result;
    Function* function = find_function(*module, name);
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    *handle = function_handle(*function);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    Module* module;
    if (const CUresult result = find_module(handle, &module); result != CUDA_SUCCESS) return result;
    *count = static_cast<unsigned int>(module->functions.size());
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
    Module* module;
    if (const CUresult result = find_module(handle, &module); result != CUDA_SUCCESS) return result;
    for (unsigned int i = 0; i < count && i < module->functions.size(); ++i)
        functions[i] = function_handle(*module->functions[i]);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = find_module(handle, &module); result != CUDA_SUCCESS) return result;
    for (const wire::GlobalInfo& global : module->description.globals) {
        if (global.name != name) continue;
        if (address != nullptr) *address = global.range.address;
        if (bytes != nullptr) *bytes = global.range.size_bytes;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

}  // namespace weft::shim::api
