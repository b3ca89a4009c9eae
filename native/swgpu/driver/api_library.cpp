// Libraries and kernels: code that belongs to no context.
#include "swgpu/driver/api.h"
#include "swgpu/driver/log.h"
#include "swgpu/driver/module.h"

namespace weft::swdriver {
CUresult read_image_file(const char* path, std::string* content);
}

using namespace weft::swdriver;

namespace {

CUresult load(CUlibrary* out, const void* image, std::size_t size, JitOptions options) {
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(options.check());
    const Device& device = *driver().devices[0];  // all devices have the same capability
    Loaded loaded =
        load_image(image, size, static_cast<unsigned>(device.capability_major * 10 + device.capability_minor));
    options.report(loaded.result, loaded.log);
    log_failed_load(loaded, options);
    WEFT_TRY(loaded.result);
    Ref<Library> library(new Library(loaded.program));
    HandleTable::instance().insert(library.get());
    *out = library->handle_as<CUlibrary>();
    return CUDA_SUCCESS;
}

template <typename T, typename H>
CUresult need(H handle, const void* out, Ref<T>* object) {
    WEFT_TRY(check_ready());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *object = find<T>(handle);
    return *object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

WEFT_API CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option* jit_options, void** jit_values,
                                    unsigned int jit_count, CUlibraryOption*, void**, unsigned int) {
    WEFT_TRY(check_ready());
    return load(out, code, 0, JitOptions(jit_count, jit_options, jit_values));
}

WEFT_API CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* jit_options, void** jit_values,
                                        unsigned int jit_count, CUlibraryOption*, void**, unsigned int) {
    WEFT_TRY(check_ready());
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::string content;
    WEFT_TRY(read_image_file(path, &content));
    return load(out, content.c_str(), content.size() + 1, JitOptions(jit_count, jit_options, jit_values));
}

WEFT_API CUresult cuLibraryUnload(CUlibrary handle) {
    WEFT_TRY(check_ready());
    const Ref<Library> library = HandleTable::instance().remove<Library>(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    library->close();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
    Ref<Library> library;
    WEFT_TRY(need(handle, out, &library));
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Ref<Kernel> kernel = library->kernel(name);
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    *out = kernel->handle_as<CUkernel>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    Ref<Library> library;
    WEFT_TRY(need(handle, count, &library));
    *count = static_cast<unsigned>(library->kernels().size());
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int room, CUlibrary handle) {
    Ref<Library> library;
    WEFT_TRY(need(handle, kernels, &library));
    unsigned i = 0;
    for (const Ref<Kernel>& kernel : library->kernels()) {
        if (i < room) kernels[i++] = kernel->handle_as<CUkernel>();
    }
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
    WEFT_ENTER(entry);
    Ref<Library> library;
    WEFT_TRY(need(handle, out, &library));
    Ref<Module> module;
    WEFT_TRY(library->module(*entry.context, &module));
    *out = module->handle_as<CUmodule>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary handle, const char* name) {
    WEFT_ENTER(entry);
    Ref<Library> library;
    WEFT_TRY(need(handle, name, &library));
    if (address == nullptr && size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Ref<Module> module;
    WEFT_TRY(library->module(*entry.context, &module));
    return module->global(name, address, size) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

WEFT_API CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary handle, const char* name) {
    Ref<Library> library;
    WEFT_TRY(need(handle, name, &library));
    if (address == nullptr && size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_FOUND;  // managed memory is not offered, so no variable is of that kind
}

// Kernels.

WEFT_API CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
    WEFT_ENTER(entry);
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, out, &kernel));
    Ref<Function> function;
    WEFT_TRY(kernel->function(*entry.context, &function));
    *out = function->handle_as<CUfunction>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, out, &kernel));
    *out = kernel->library->handle_as<CUlibrary>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuKernelGetName(const char** out, CUkernel handle) {
    WEFT_TRY(check_ready());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const Ref<Kernel> kernel = find<Kernel>(handle)) {
        *out = kernel->info.name.c_str();
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

WEFT_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice number) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, value, &kernel));
    const Device* device = find_device(number);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return get_attribute(kernel->info, kernel->settings, device->capability_major * 10 + device->capability_minor,
                         attribute, value);
}

WEFT_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice number) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, handle, &kernel));
    if (find_device(number) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return set_attribute(kernel->info, kernel->settings, attribute, value);
}

WEFT_API CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice number) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, handle, &kernel));
    return find_device(number) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

WEFT_API CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, offset, &kernel));
    return param_info(kernel->info, index, offset, size);
}

WEFT_API CUresult cuKernelGetParamCount(CUkernel handle, size_t* count) {
    Ref<Kernel> kernel;
    WEFT_TRY(need(handle, count, &kernel));
    *count = kernel->info.parameters.size();
    return CUDA_SUCCESS;
}
