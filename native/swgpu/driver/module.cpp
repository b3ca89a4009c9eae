#include "swgpu/driver/module.h"

#include <algorithm>
#include <cstring>

#include "swgpu/driver/driver.h"
#include "swgpu/driver/memory.h"

namespace weft::swdriver {

const ptx::FunctionInfo* find_entry(const engine::Program& program, std::string_view name) {
    for (const ptx::FunctionInfo& info : program.functions()) {
        if (info.is_entry && info.is_defined && info.name == name) return &info;
    }
    return nullptr;
}

Function::Function(Module& in_module, const ptx::FunctionInfo& function_info)
    : Object(kKind), info(function_info), module(&in_module) {}

Function::~Function() = default;

std::shared_ptr<const engine::Kernel> Function::kernel() {
    std::lock_guard lock(mutex_);
    if (!kernel_) kernel_ = module->code()->kernel(info.name);
    return kernel_;
}

CUresult Module::create(Context& context, ProgramPtr program, Ref<Module>* out, std::string* log) {
    Ref<Module> module(new Module(context, std::move(program)));
    Device& device = *driver().devices[static_cast<std::size_t>(context.device())];
    const auto& variables = module->program_->variables();
    for (const ptx::VariableInfo& variable : variables) {
        std::uint64_t address = 0;
        if (variable.space != ptx::VariableSpace::shared && variable.size_bytes > 0) {
            const auto memory = allocate_device(device, context, variable.size_bytes, MemoryKind::global);
            if (!memory) {
                module->close();
                *log = "out of memory for variable '" + variable.name + "'";
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
            address = *memory;
        }
        module->addresses_.push_back(address);
    }
    auto code = engine::Module::load(module->program_, module->addresses_);
    if (!code) {
        module->close();
        *log = code.status().text();
        return CUDA_ERROR_INVALID_PTX;
    }
    module->code_ = *code;
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (module->addresses_[i] == 0) continue;
        const std::vector<std::uint8_t> image = module->code_->initial_image(i);
        std::memcpy(reinterpret_cast<void*>(module->addresses_[i]), image.data(),
                    std::min<std::size_t>(image.size(), variables[i].size_bytes));
    }
    *out = module;
    return CUDA_SUCCESS;
}

Module::~Module() = default;

Ref<Function> Module::function(std::string_view name) {
    std::lock_guard lock(mutex_);
    if (closed_) return {};
    if (auto known = functions_.find(name); known != functions_.end()) return known->second;
    const ptx::FunctionInfo* info = find_entry(*program_, name);
    if (info == nullptr) return {};
    Ref<Function> made(new Function(*this, *info));
    HandleTable::instance().insert(made.get());
    functions_.emplace(info->name, made);
    return made;
}

std::vector<Ref<Function>> Module::functions() {
    std::vector<Ref<Function>> all;
    for (const ptx::FunctionInfo& info : program_->functions()) {
        if (info.is_entry && info.is_defined) all.push_back(function(info.name));
    }
    return all;
}

bool Module::global(std::string_view name, CUdeviceptr* address, size_t* size) const {
    const auto& variables = program_->variables();
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].name != name || i >= addresses_.size() || addresses_[i] == 0) continue;
        if (address != nullptr) *address = addresses_[i];
        if (size != nullptr) *size = variables[i].size_bytes;
        return true;
    }
    return false;
}

void Module::close() {
    std::map<std::string, Ref<Function>, std::less<>> functions;
    {
        std::lock_guard lock(mutex_);
        if (closed_) return;
        closed_ = true;
        functions.swap(functions_);
    }
    for (const auto& [name, function] : functions)
        HandleTable::instance().remove<Function>(function->handle_as<CUfunction>());
    for (const std::uint64_t address : addresses_) {
        if (address != 0) free_device(address, MemoryKind::global);
    }
}

Kernel::Kernel(Library& in_library, const ptx::FunctionInfo& function_info)
    : Object(kKind), info(function_info), program(in_library.program), library(&in_library) {}

Kernel::~Kernel() = default;

CUresult Kernel::function(Context& context, Ref<Function>* out) {
    Ref<Module> module;
    if (const CUresult result = library->module(context, &module); result != CUDA_SUCCESS) return result;
    *out = module->function(info.name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Ref<Kernel> Library::kernel(std::string_view name) {
    std::lock_guard lock(mutex_);
    if (auto known = kernels_.find(name); known != kernels_.end()) return known->second;
    const ptx::FunctionInfo* info = find_entry(*program, name);
    if (info == nullptr) return {};
    Ref<Kernel> made(new Kernel(*this, *info));
    HandleTable::instance().insert(made.get());
    kernels_.emplace(info->name, made);
    return made;
}

std::vector<Ref<Kernel>> Library::kernels() {
    std::vector<Ref<Kernel>> all;
    for (const ptx::FunctionInfo& info : program->functions()) {
        if (info.is_entry && info.is_defined) all.push_back(kernel(info.name));
    }
    return all;
}

CUresult Library::module(Context& context, Ref<Module>* out) {
    std::lock_guard lock(mutex_);
    auto known = modules_.find(context.id());
    if (known == modules_.end()) {
        std::erase_if(modules_, [](const auto& entry) {
            return entry.second->context().status() == CUDA_ERROR_CONTEXT_IS_DESTROYED;
        });
        Ref<Module> made;
        std::string log;
        if (const CUresult result = Module::create(context, program, &made, &log); result != CUDA_SUCCESS)
            return result;
        HandleTable::instance().insert(made.get());
        context.add_object(*made);
        known = modules_.emplace(context.id(), made).first;
    }
    *out = known->second;
    return CUDA_SUCCESS;
}

void Library::close() {
    std::map<std::string, Ref<Kernel>, std::less<>> kernels;
    std::map<std::uint64_t, Ref<Module>> modules;
    {
        std::lock_guard lock(mutex_);
        kernels.swap(kernels_);
        modules.swap(modules_);
    }
    for (const auto& [name, kernel] : kernels) HandleTable::instance().remove<Kernel>(kernel->handle_as<CUkernel>());
    for (const auto& [id, module] : modules) {
        synchronize(module->context());
        module->close();
        module->context().forget_object(*module);
        HandleTable::instance().remove<Module>(module->handle_as<CUmodule>());
    }
}

CUresult find_function(const Entry& entry, CUfunction handle, Ref<Function>* out) {
    *out = find<Function>(handle);
    if (*out) return CUDA_SUCCESS;
    const Ref<Kernel> kernel = find<Kernel>(handle);
    return kernel ? kernel->function(*entry.context, out) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace weft::swdriver
