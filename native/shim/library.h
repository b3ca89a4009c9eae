// Libraries and kernels: context-independent images. A library loads its module into a context when it is first used
// there.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "shim/module_loader.h"

namespace weft::shim {

struct Library;

struct Kernel {
    Library* library = nullptr;
    std::string name;
    std::uint64_t handle = 0;
    std::vector<std::pair<std::pair<CUfunction_attribute, CUdevice>, int>>
        attributes;  // set by the program, under library->mutex
};

struct Library {
    std::vector<std::byte> bytes;  // a copy of the image
    HashedImage image;
    wire::JitOptions options;
    std::mutex mutex;
    std::unordered_map<std::uint32_t, std::shared_ptr<Module>> modules;  // by context number
    std::unordered_map<std::string, std::shared_ptr<Kernel>> kernels;
    Device* retained = nullptr;  // its primary context is held because there was no current one
    std::uint64_t handle = 0;
};

// The library's module in the context; loads it there on first use.
CUresult library_module(Library& library, Context& context, Module** module);
// The kernel's function in the context.
CUresult kernel_function(Kernel& kernel, Context& context, Function** function);
// A CUfunction, or a CUkernel passed where a function is expected, in the current context.
CUresult resolve_function(CUfunction handle, Context& context, Function** function);

HandleTable<Library, HandleTag::library>& libraries();
HandleTable<Kernel, HandleTag::kernel>& kernels();

}  // namespace weft::shim
