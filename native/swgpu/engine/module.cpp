// A program with addresses: images of variables, kernels built on demand.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "swgpu/engine/image.h"

namespace weft::engine {

struct Module::Impl {
    std::shared_ptr<const Program> program;
    std::vector<uint64_t> addresses;
    std::mutex mutex;
    std::unordered_map<uint32_t, std::shared_ptr<const Kernel>> kernels;

    uint64_t address_of(const std::string& name) const {
        const Program::Impl& impl = program->impl();
        if (auto at = impl.variable_of.find(name); at != impl.variable_of.end()) return addresses[at->second];
        if (auto at = impl.function_of.find(name); at != impl.function_of.end()) return function_address(at->second);
        return 0;
    }
};

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;
const Program& Module::program() const { return *impl_->program; }

Result<std::shared_ptr<const Module>> Module::load(std::shared_ptr<const Program> program,
                                                   std::vector<uint64_t> addresses) {
    if (!program->undefined().empty())
        return Status::error(ErrorCode::not_found, "undefined name '" + program->undefined()[0] + "'");
    if (addresses.size() != program->variables().size()) {
        return Status::error(ErrorCode::invalid_argument,
                             "one address is needed for each of " + std::to_string(program->variables().size()) +
                                 " variables, " + std::to_string(addresses.size()) + " were given");
    }
    auto impl = std::make_unique<Impl>();
    impl->program = std::move(program);
    impl->addresses = std::move(addresses);
    return std::shared_ptr<const Module>(std::make_shared<Module>(std::move(impl)));
}

std::vector<uint8_t> Module::initial_image(size_t index) const {
    const ptx::VariableInfo& variable = impl_->program->variables()[index];
    std::vector<uint8_t> image(variable.size_bytes);
    std::copy(variable.initializer.begin(), variable.initializer.end(), image.begin());
    for (const ptx::Relocation& relocation : variable.relocations) {
        uint64_t value =
            (impl_->address_of(relocation.symbol) + static_cast<uint64_t>(relocation.addend)) >> relocation.shift_bits;
        size_t size = std::min<size_t>(relocation.size_bytes, 8);
        if (relocation.offset_bytes + size <= image.size()) std::memcpy(&image[relocation.offset_bytes], &value, size);
    }
    return image;
}

std::shared_ptr<const Kernel> Module::kernel(std::string_view name) const {
    const Program::Impl& program = impl_->program->impl();
    auto at = program.function_of.find(std::string(name));
    if (at == program.function_of.end() || !program.functions[at->second].is_entry || !program.codes[at->second])
        return nullptr;
    std::lock_guard lock(impl_->mutex);
    std::shared_ptr<const Kernel>& kernel = impl_->kernels[at->second];
    if (!kernel) kernel = std::make_shared<const Kernel>(build_image(program, at->second, impl_->addresses));
    return kernel;
}

}  // namespace weft::engine
