// The library and kernel calls of CUDA 12: context-independent modules (library.h).
#include <cstring>

#include "gen/shim_api.h"
#include "shim/library.h"
#include "shim/read_file.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find_library(CUlibrary handle, Library** library) {
    *library = libraries().find(handle);
    return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult find_kernel(CUkernel handle, Kernel** kernel) {
    *kernel = kernels().find(handle);
    return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The current context; without one the primary context of the first device, which the library then holds.
CUresult context_for(Library& library, Context** context) {
    if (current_context() != nullptr) return usable_context(context);
    Device* device = Runtime::get()->device(0);
    if (library.retained == nullptr) {
        CUcontext handle;
        if (const CUresult result = cuDevicePrimaryCtxRetain(&handle, 0); result != CUDA_SUCCESS) return result;
        library.retained = device;
    }
    *context = device->primary.get();
    return CUDA_SUCCESS;
}

CUresult load(CUlibrary* handle, const void* code, unsigned count, CUjit_option* options, void** values) {
    const auto inspected = inspect_image(code);
    if (!inspected) return CUDA_ERROR_INVALID_IMAGE;
    auto library = std::make_shared<Library>();
    library->bytes.assign(inspected->bytes.begin(), inspected->bytes.end());
    library->image = hash_image({inspected->kind, library->bytes});
    Context* context;
    if (const CUresult result = context_for(*library, &context); result != CUDA_SUCCESS) return result;
    JitRequest jit(count, options, values);
    library->options = jit.forwarded();
    std::shared_ptr<Module> module;
    const CUresult loaded = load_module(*context, library->image, jit, &module);
    if (loaded != CUDA_SUCCESS) {
        if (library->retained != nullptr) (void)cuDevicePrimaryCtxRelease_v2(library->retained->ordinal);
        return loaded;
    }
    library->modules.emplace(context->number, std::move(module));
    library->handle = libraries().insert(library);
    *handle = reinterpret_cast<CUlibrary>(library->handle);
    return library->handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

std::shared_ptr<Kernel> make_kernel(Library& library, const std::string& name) {
    std::lock_guard lock(library.mutex);
    auto& kernel = library.kernels[name];
    if (!kernel) {
        kernel = std::make_shared<Kernel>();
        kernel->library = &library;
        kernel->name = name;
        kernel->handle = kernels().insert(kernel);
    }
    return kernel;
}

CUresult any_module(Library& library, Module** module) {
    Context* context;
    if (const CUresult result = context_for(library, &context); result != CUDA_SUCCESS) return result;
    return library_module(library, *context, module);
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
                           unsigned int jit_count, CUlibraryOption*, void**, unsigned int) {
    if (code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load(library, code, jit_count, jit_options, jit_values);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options, void** jit_values,
                               unsigned int jit_count, CUlibraryOption*, void**, unsigned int) {
    std::vector<char> bytes;
    if (const CUresult read = read_file(path, &bytes); read != CUDA_SUCCESS) return read;
    return load(library, bytes.data(), jit_count, jit_options, jit_values);
}

CUresult cuLibraryUnload(CUlibrary handle) {
    Library* library;
    if (const CUresult result = find_library(handle, &library); result != CUDA_SUCCESS) return result;
    for (auto& [number, module] : library->modules)
        if (module->context->active && module->context->number == number) unload_module(*module);
    for (auto& [name, kernel] : library->kernels) (void)kernels().remove(kernel->handle);
    Device* retained = library->retained;
    (void)libraries().remove(handle);
    return retained != nullptr ? cuDevicePrimaryCtxRelease_v2(retained->ordinal) : CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* handle, CUlibrary library_handle, const char* name) {
    Library* library;
    if (const CUresult result = find_library(library_handle, &library); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = any_module(*library, &module); result != CUDA_SUCCESS) return result;
    if (find_function(*module, name) == nullptr) return CUDA_ERROR_NOT_FOUND;
    *handle = reinterpret_cast<CUkernel>(make_kernel(*library, name)->handle);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    Library* library;
    if (const CUresult result = find_library(handle, &library); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = any_module(*library, &module); result != CUDA_SUCCESS) return result;
    *count = static_cast<unsigned int>(module->functions.size());
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* handles, unsigned int count, CUlibrary handle) {
    Library* library;
    if (const CUresult result = find_library(handle, &library); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = any_module(*library, &module); result != CUDA_SUCCESS) return result;
    for (unsigned int i = 0; i < count && i < module->functions.size(); ++i)
        handles[i] = reinterpret_cast<CUkernel>(make_kernel(*library, module->functions[i]->info->name)->handle);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* handle, CUlibrary library_handle) {
    Library* library;
    if (const CUresult result = find_library(library_handle, &library); result != CUDA_SUCCESS) return result;
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = library_module(*library, *context, &module); result != CUDA_SUCCESS) return result;
    if (module->handle == 0) module->handle = Runtime::get()->modules.insert(library->modules.at(context->number));
    *handle = reinterpret_cast<CUmodule>(module->handle);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
    CUmodule module;
    if (const CUresult result = cuLibraryGetModule(&module, handle); result != CUDA_SUCCESS) return result;
    return cuModuleGetGlobal_v2(address, bytes, module, name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Function* found;
    if (const CUresult result = kernel_function(*kernel, *context, &found); result != CUDA_SUCCESS) return result;
    *function = function_handle(*found);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    *library = reinterpret_cast<CUlibrary>(kernel->library->handle);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    *name = kernel->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    Module* module;
    if (const CUresult result = any_module(*kernel->library, &module); result != CUDA_SUCCESS) return result;
    const auto& parameters = find_function(*module, kernel->name.c_str())->info->parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size_bytes;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    if (Runtime::get()->device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    {
        std::lock_guard lock(kernel->library->mutex);
        for (const auto& [key, set] : kernel->attributes)
            if (key.first == attribute && key.second == device) return *value = set, CUDA_SUCCESS;
    }
    Module* module;
    if (const CUresult result = any_module(*kernel->library, &module); result != CUDA_SUCCESS) return result;
    return cuFuncGetAttribute(value, attribute, function_handle(*find_function(*module, kernel->name.c_str())));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    if (Runtime::get()->device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Context* context;
    if (const CUresult result = context_for(*kernel->library, &context); result != CUDA_SUCCESS) return result;
    Function* function;
    if (const CUresult result = kernel_function(*kernel, *context, &function); result != CUDA_SUCCESS) return result;
    if (const CUresult result = cuFuncSetAttribute(function_handle(*function), attribute, value);
        result != CUDA_SUCCESS)
        return result;
    std::lock_guard lock(kernel->library->mutex);
    for (auto& [key, set] : kernel->attributes)
        if (key.first == attribute && key.second == device) return set = value, CUDA_SUCCESS;
    kernel->attributes.push_back({{attribute, device}, value});
    return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
    Kernel* kernel;
    if (const CUresult result = find_kernel(handle, &kernel); result != CUDA_SUCCESS) return result;
    if (Runtime::get()->device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;  // a preference: the driver decides
}

}  // namespace weft::shim::api
