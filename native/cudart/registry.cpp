#include "cudart/registry.h"

#include <utility>

#include "cudart/entry.h"
#include "cudart/fatbinary.h"
#include "cudart/pointer_map.h"

namespace weft::cudart {
namespace {

// Never destroyed: libraries unregister after the last static destructor.
struct Registry {
    std::mutex mutex;
    PointerMap<Kernel> kernels;
    PointerMap<Variable> variables;
    PointerMap<const void> host_functions;  // by CUfunction
};

Registry& registry() {
    static Registry& instance = *new Registry;
    return instance;
}

cudaError_t fill_managed(FatBinary& binary) {
    for (Variable* variable : binary.managed) {
        CUdeviceptr address = 0;
        std::size_t size_bytes = 0;
        WEFT_TRY(driver().cuLibraryGetManaged(&address, &size_bytes, binary.library, variable->name));
        *variable->host_pointer = to_pointer(address);
    }
    return cudaSuccess;
}

}  // namespace

FatBinary* add_binary(const void* wrapper) {
    auto* binary = new FatBinary;
    binary->wrapper = wrapper;
    return binary;
}

// Kernels and variables are forgotten but not freed: another thread may be in a launch while the program ends.
void remove_binary(FatBinary* binary) {
    CUlibrary library;
    {
        std::lock_guard lock(registry().mutex);
        for (const void* key : binary->keys) {
            registry().kernels.remove(key);
            registry().variables.remove(key);
        }
        binary->keys.clear();
    }
    {
        std::lock_guard lock(binary->mutex);
        library = std::exchange(binary->library, nullptr);
    }
    if (library != nullptr) (void)driver().cuLibraryUnload(library);
}

void add_kernel(FatBinary* binary, const void* host_function, const char* name) {
    auto* kernel = new Kernel{binary, name, host_function, {}, {}};
    std::lock_guard lock(registry().mutex);
    registry().kernels.insert(host_function, kernel);
    registry().kernels.insert(kernel, kernel);
    binary->keys.push_back(host_function);
    binary->keys.push_back(kernel);
}

void add_variable(FatBinary* binary, const void* host_variable, Variable&& variable) {
    auto* added = new Variable(variable);
    added->binary = binary;
    std::lock_guard lock(registry().mutex);
    registry().variables.insert(host_variable, added);
    binary->keys.push_back(host_variable);
    if (added->host_pointer != nullptr) binary->managed.push_back(added);
}

Kernel* find_kernel(const void* key) { return registry().kernels.find(key); }
const void* find_host_function(CUfunction function) { return registry().host_functions.find(function); }
Variable* find_variable(const void* key) { return registry().variables.find(key); }

cudaError_t load_binary(FatBinary& binary, CUlibrary* library) {
    std::lock_guard lock(binary.mutex);
    if (binary.library == nullptr) WEFT_TRY(load_fat_binary(binary.wrapper, &binary.library));
    *library = binary.library;
    const std::uint32_t epoch = g_epoch.load(std::memory_order_acquire);
    if (binary.managed_epoch == epoch) return cudaSuccess;
    WEFT_TRY(fill_managed(binary));
    binary.managed_epoch = epoch;
    return cudaSuccess;
}

cudaError_t kernel_handle(Kernel& kernel, CUkernel* handle) {
    *handle = kernel.handle.load(std::memory_order_acquire);
    if (*handle != nullptr) return cudaSuccess;
    CUlibrary library;
    WEFT_TRY(load_binary(*kernel.binary, &library));
    const CUresult found = driver().cuLibraryGetKernel(handle, library, kernel.name);
    if (found == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    WEFT_TRY(found);
    kernel.handle.store(*handle, std::memory_order_release);
    return cudaSuccess;
}

cudaError_t kernel_function(Kernel& kernel, CUfunction* function) {
    const int device = t_state.known_device;
    const bool cached = device >= 0 && device < Kernel::kSlots;
    const std::uint32_t epoch = t_state.epoch;
    if (cached && kernel.slots[device].epoch.load(std::memory_order_acquire) == epoch) {
        *function = kernel.slots[device].function.load(std::memory_order_relaxed);
        return cudaSuccess;
    }
    CUkernel handle;
    WEFT_TRY(kernel_handle(kernel, &handle));
    WEFT_TRY(driver().cuKernelGetFunction(function, handle));
    {
        std::lock_guard lock(registry().mutex);
        registry().host_functions.insert(*function, kernel.host_function);
    }
    if (cached) {
        kernel.slots[device].function.store(*function, std::memory_order_relaxed);
        kernel.slots[device].epoch.store(epoch, std::memory_order_release);
    }
    return cudaSuccess;
}

cudaError_t variable_address(const Variable& variable, CUdeviceptr* address, std::size_t* size_bytes) {
    CUlibrary library;
    WEFT_TRY(load_binary(*variable.binary, &library));
    const CUresult found = variable.host_pointer != nullptr
                               ? driver().cuLibraryGetManaged(address, size_bytes, library, variable.name)
                               : driver().cuLibraryGetGlobal(address, size_bytes, library, variable.name);
    return found == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : to_error(found);
}

cudaError_t resolve_function(const void* func, CUfunction* function) {
    if (Kernel* kernel = find_kernel(func)) return kernel_function(*kernel, function);
    if (func == nullptr) return cudaErrorInvalidDeviceFunction;
    // cudaKernel_t and cudaFunction_t may be passed as well; the driver knows its own.
    if (driver().cuKernelGetFunction(function, static_cast<CUkernel>(const_cast<void*>(func))) == CUDA_SUCCESS)
        return cudaSuccess;
    CUmodule module;
    *function = static_cast<CUfunction>(const_cast<void*>(func));
    return driver().cuFuncGetModule(&module, *function) == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

}  // namespace weft::cudart
