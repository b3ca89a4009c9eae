// Modules, functions, libraries and kernels. A library is code without a context; in each context it is used in, it has
// a module of its own, made at first use. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gen/cuda_abi.h"
#include "swgpu/driver/context.h"
#include "swgpu/driver/image.h"
#include "swgpu/driver/object.h"

namespace weft::swdriver {

struct Entry;

// What cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
    std::atomic<int> max_dynamic_shared{-1};  // -1: the default, 48 KiB less what is static
    std::atomic<int> preferred_carveout{-1};
    std::atomic<int> cluster_dimension[3]{};
    std::atomic<int> non_portable_cluster{0};
    std::atomic<int> cluster_policy{0};
};

// Both answer with what the manual says for attributes and values that are wrong.
CUresult get_attribute(const ptx::FunctionInfo& info, const FunctionSettings& settings, int capability,
                       CUfunction_attribute attribute, int* value);
CUresult set_attribute(const ptx::FunctionInfo& info, FunctionSettings& settings, CUfunction_attribute attribute,
                       int value);
int max_threads(const ptx::FunctionInfo& info);
int registers(const ptx::FunctionInfo& info);
int max_dynamic_shared(const ptx::FunctionInfo& info, const FunctionSettings& settings);
CUresult param_info(const ptx::FunctionInfo& info, size_t index, size_t* offset, size_t* size);

class Module;

class Function final : public Object {
  public:
    static constexpr Kind kKind = Kind::function;
    Function(Module& module, const ptx::FunctionInfo& function_info);
    ~Function() override;
    const ptx::FunctionInfo& info;  // lives in the program, which the kernel keeps
    Ref<Module> module;
    std::shared_ptr<const engine::Kernel> kernel();  // null: the module is gone
    FunctionSettings settings;

  private:
    std::mutex mutex_;
    std::shared_ptr<const engine::Kernel> kernel_;
};

class Module final : public Object {
  public:
    static constexpr Kind kKind = Kind::module;
    // Places the program's variables in device memory and writes their initial values.
    static CUresult create(Context& context, ProgramPtr program, Ref<Module>* module, std::string* log);
    ~Module() override;

    Context& context() const { return *context_; }
    const engine::Program& program() const { return *program_; }
    const std::shared_ptr<const engine::Module>& code() const { return code_; }
    // Handles are made at first request.
    Ref<Function> function(std::string_view name);
    std::vector<Ref<Function>> functions();
    bool global(std::string_view name, CUdeviceptr* address, size_t* size) const;
    // Withdraws the functions and frees the variables. The context's work must have ended. Called once or more.
    void close();

  private:
    Module(Context& context, ProgramPtr program) : Object(kKind), context_(&context), program_(std::move(program)) {}
    const Ref<Context> context_;
    const ProgramPtr program_;
    std::shared_ptr<const engine::Module> code_;
    std::vector<std::uint64_t> addresses_;  // parallel to program_->variables()
    std::mutex mutex_;
    bool closed_ = false;
    std::map<std::string, Ref<Function>, std::less<>> functions_;
};

class Library;

class Kernel final : public Object {
  public:
    static constexpr Kind kKind = Kind::kernel;
    Kernel(Library& in_library, const ptx::FunctionInfo& function_info);
    ~Kernel() override;
    const ptx::FunctionInfo& info;
    const ProgramPtr program;
    Ref<Library> library;
    FunctionSettings settings;  // of all devices
    // The kernel as a function of this context.
    CUresult function(Context& context, Ref<Function>* function);
};

class Library final : public Object {
  public:
    static constexpr Kind kKind = Kind::library;
    explicit Library(ProgramPtr code) : Object(kKind), program(std::move(code)) {}
    const ProgramPtr program;
    Ref<Kernel> kernel(std::string_view name);
    std::vector<Ref<Kernel>> kernels();
    CUresult module(Context& context, Ref<Module>* module);
    void close();

  private:
    std::mutex mutex_;
    std::map<std::string, Ref<Kernel>, std::less<>> kernels_;
    std::map<std::uint64_t, Ref<Module>> modules_;  // by the context's id
};

const ptx::FunctionInfo* find_entry(const engine::Program& program, std::string_view name);

// A CUfunction handle, which may be a CUkernel in disguise (the manual allows it in many calls).
CUresult find_function(const Entry& entry, CUfunction handle, Ref<Function>* function);

}  // namespace weft::swdriver
