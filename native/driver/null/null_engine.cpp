// The engine's interface without execution, so that the software GPU's driver runs on top: programs know their entries
// and variables, launches end at once. Initial values of variables are zero.
#include "driver/null/scan.h"
#include "swgpu/engine/engine.h"

namespace weft::engine {

struct Program::Impl {
    nulldriver::Scan scan;
    std::vector<std::string> undefined;
};

Program::Program(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;
const std::vector<ptx::FunctionInfo>& Program::functions() const { return impl_->scan.functions; }
const std::vector<ptx::VariableInfo>& Program::variables() const { return impl_->scan.variables; }
const std::vector<std::string>& Program::undefined() const { return impl_->undefined; }

Result<std::shared_ptr<const Program>> compile(std::string_view ptx, const CompileOptions&) {
    if (ptx.find(".version") == std::string_view::npos)
        return Status::error(ErrorCode::invalid_argument, "line 1: no .version");
    auto impl = std::make_unique<Program::Impl>();
    impl->scan = nulldriver::scan_ptx(ptx);
    return std::shared_ptr<const Program>(std::make_shared<Program>(std::move(impl)));
}

Result<std::shared_ptr<const Program>> link(std::span<const std::shared_ptr<const Program>> programs) {
    auto impl = std::make_unique<Program::Impl>();
    for (const auto& program : programs) {
        const nulldriver::Scan& scan = program->impl().scan;
        impl->scan.functions.insert(impl->scan.functions.end(), scan.functions.begin(), scan.functions.end());
        impl->scan.variables.insert(impl->scan.variables.end(), scan.variables.begin(), scan.variables.end());
    }
    return std::shared_ptr<const Program>(std::make_shared<Program>(std::move(impl)));
}

class Kernel {};

struct Module::Impl {
    std::shared_ptr<const Program> program;
};

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;

Result<std::shared_ptr<const Module>> Module::load(std::shared_ptr<const Program> program, std::vector<uint64_t>) {
    auto impl = std::make_unique<Impl>();
    impl->program = std::move(program);
    return std::shared_ptr<const Module>(std::make_shared<Module>(std::move(impl)));
}

const Program& Module::program() const { return *impl_->program; }
std::vector<uint8_t> Module::initial_image(size_t index) const {
    return std::vector<uint8_t>(program().variables()[index].size_bytes);
}
std::shared_ptr<const Kernel> Module::kernel(std::string_view) const { return std::make_shared<const Kernel>(); }

std::string_view to_string(FaultKind) { return "none"; }
std::string Fault::describe() const { return "none"; }

struct Worker::Impl {};
Worker::Worker() = default;
Worker::~Worker() = default;

struct Launch::Impl {
    Fault fault;
};

Launch::Launch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Launch::~Launch() = default;
Result<std::shared_ptr<Launch>> Launch::create(std::shared_ptr<const Kernel>, const LaunchConfig&) {
    return std::make_shared<Launch>(std::make_unique<Impl>());
}
StepOutcome Launch::step(Worker&, uint64_t) { return StepOutcome::finished; }
void Launch::cancel() {}
bool Launch::finished() const { return true; }
uint32_t Launch::parallelism() const { return 0; }
const Fault& Launch::fault() const { return impl_->fault; }
uint64_t Launch::thread_instructions() const { return 0; }
std::string_view instruction_set() { return "none"; }

}  // namespace weft::engine
