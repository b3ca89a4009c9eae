#include "shim/library.h"

#include "shim/runtime.h"

namespace weft::shim {

HandleTable<Library, HandleTag::library>& libraries() {
    static auto& table = *new HandleTable<Library, HandleTag::library>;
    return table;
}

HandleTable<Kernel, HandleTag::kernel>& kernels() {
    static auto& table = *new HandleTable<Kernel, HandleTag::kernel>;
    return table;
}

CUresult library_module(Library& library, Context& context, Module** module) {
    std::lock_guard lock(library.mutex);
    const auto found = library.modules.find(context.number);
    if (found != library.modules.end()) {
        *module = found->second.get();
        return CUDA_SUCCESS;
    }
    JitRequest jit(0, nullptr, nullptr);
    std::shared_ptr<Module> loaded;
    if (const CUresult result = load_module(context, library.image, jit, &loaded); result != CUDA_SUCCESS)
        return result;
    *module = loaded.get();
    library.modules.emplace(context.number, std::move(loaded));
    return CUDA_SUCCESS;
}

CUresult kernel_function(Kernel& kernel, Context& context, Function** function) {
    Module* module;
    if (const CUresult result = library_module(*kernel.library, context, &module); result != CUDA_SUCCESS)
        return result;
    *function = find_function(*module, kernel.name.c_str());
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult resolve_function(CUfunction handle, Context& context, Function** function) {
    *function = Runtime::get()->functions.find(handle);
    if (*function != nullptr) return CUDA_SUCCESS;
    Kernel* kernel = kernels().find(handle);
    return kernel != nullptr ? kernel_function(*kernel, context, function) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace weft::shim
