// What the program's constructors registered: fat binaries, kernels and variables by the address of their host side. An
// image is loaded when something of it is first used.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "cudart/abi.h"
#include "cudart/state.h"

namespace weft::cudart {

struct Kernel;
struct Variable;

struct FatBinary {
    const void* wrapper = nullptr;
    std::mutex mutex;                 // loading
    CUlibrary library = nullptr;      // under mutex
    std::uint32_t managed_epoch = 0;  // when the addresses of managed variables were last filled in
    std::vector<const void*> keys;    // of its kernels and variables; under the registry's mutex
    std::vector<Variable*> managed;
};

struct Kernel {
    FatBinary* binary;
    const char* name;
    const void* host_function;
    std::atomic<CUkernel> handle{nullptr};
    // Per device, its function in the primary context, valid during the epoch.
    struct Slot {
        std::atomic<std::uint32_t> epoch{0};
        std::atomic<CUfunction> function{nullptr};
    };
    static constexpr int kSlots = 16;
    Slot slots[kSlots];
};

struct Variable {
    FatBinary* binary;
    const char* name;
    std::size_t size_bytes;
    void** host_pointer;  // of a managed variable: where the program reads its address; else null
};

FatBinary* add_binary(const void* wrapper);
void remove_binary(FatBinary* binary);
void add_kernel(FatBinary* binary, const void* host_function, const char* name);
void add_variable(FatBinary* binary, const void* host_variable, Variable&& variable);

// By the host function, or by the Kernel itself (what __cudaGetKernel gave to the program's launch stubs). Null:
// unknown.
Kernel* find_kernel(const void* key);
Variable* find_variable(const void* key);

// The host function that a driver's function was found for; null if it is none of the program's.
const void* find_host_function(CUfunction function);

// With a current context. The function of the kernel in it.
cudaError_t kernel_function(Kernel& kernel, CUfunction* function);
cudaError_t kernel_handle(Kernel& kernel, CUkernel* handle);
cudaError_t variable_address(const Variable& variable, CUdeviceptr* address, std::size_t* size_bytes);
// Loads the image and gives managed variables their addresses.
cudaError_t load_binary(FatBinary& binary, CUlibrary* library);

// What `const void* func` of the API leads to in the current context: a registered kernel, or a driver's handle passed
// as such.
cudaError_t resolve_function(const void* func, CUfunction* function);

}  // namespace weft::cudart
