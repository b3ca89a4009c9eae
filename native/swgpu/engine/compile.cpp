// compile() and link(): from texts to a Program.
#include <algorithm>
#include <unordered_set>

#include "swgpu/engine/image.h"
#include "swgpu/engine/lowering.h"
#include "swgpu/ptx/parser.h"

namespace weft::engine {
namespace {

using ptx::Linkage;

// Bounds what the 32-bit offsets of constants must hold.
constexpr size_t kMaxTextBytes = 128 << 20;
constexpr uint64_t kMaxConstantBytes = uint64_t{1} << 30;

Status check_size(const Program::Impl& impl) {
    uint64_t bytes = 0;
    for (const auto& code : impl.codes) bytes += code ? code->constants.size() : 0;
    if (bytes <= kMaxConstantBytes) return Status::ok();
    return Status::error(ErrorCode::unsupported, "the program has too many constants");
}

Status check_target(const ptx::ModuleText& text, const CompileOptions& options) {
    if (text.target_sm <= options.device_sm) return Status::ok();
    return Status::error(ErrorCode::version, "the text is for sm_" + std::to_string(text.target_sm) +
                                                 ", the device is sm_" + std::to_string(options.device_sm));
}

// A function may be declared first and defined later; one entry per name remains.
Status add_functions(const ptx::ModuleText& text, Program::Impl& impl) {
    std::unordered_map<std::string_view, uint32_t> seen;
    SymbolKinds kinds;
    for (const ptx::VariableInfo& variable : text.variables) kinds.emplace(variable.name, variable.space);
    for (const ptx::Function& function : text.functions) {
        auto [at, is_new] = seen.emplace(function.info.name, static_cast<uint32_t>(impl.functions.size()));
        if (is_new) {
            impl.functions.push_back(function.info);
            impl.codes.emplace_back();
        }
        if (!function.info.is_defined) continue;
        if (impl.codes[at->second]) {
            return Status::error(ErrorCode::invalid_argument, "line " + std::to_string(function.line) + ": '" +
                                                                  function.info.name + "' is defined twice");
        }
        Result<FunctionCode> code = Lowering(function, kinds).run();
        if (!code) return code.take_status();
        impl.functions[at->second] = function.info;
        impl.codes[at->second] = std::make_shared<const FunctionCode>(std::move(code.value()));
    }
    return Status::ok();
}

Status add_aliases(const ptx::ModuleText& text, Program::Impl& impl) {
    for (const ptx::Alias& alias : text.aliases) {
        auto find = [&](const std::string& name) {
            return std::find_if(impl.functions.begin(), impl.functions.end(),
                                [&](auto& info) { return info.name == name; });
        };
        auto target = find(alias.target), name = find(alias.name);
        if (target == impl.functions.end() || name == impl.functions.end()) {
            return Status::error(ErrorCode::invalid_argument,
                                 "line " + std::to_string(alias.line) + ": unknown name in .alias");
        }
        impl.codes[static_cast<size_t>(name - impl.functions.begin())] =
            impl.codes[static_cast<size_t>(target - impl.functions.begin())];
        name->is_defined = true;
    }
    return Status::ok();
}

// Every name that code or an initialiser uses must be declared somewhere in its own text.
Status check_names(const Program::Impl& impl) {
    auto known = [&](const std::string& name) { return impl.function_of.count(name) || impl.variable_of.count(name); };
    auto unknown = [](const std::string& name) {
        return Status::error(ErrorCode::invalid_argument, "unknown name '" + name + "'");
    };
    for (const auto& code : impl.codes) {
        if (!code) continue;
        for (const std::string& name : code->symbols) {
            if (!known(name)) return unknown(name);
        }
        for (const CallSite& call : code->calls) {
            if (call.callee != Callee::symbol) continue;
            auto at = impl.function_of.find(code->symbols[call.symbol]);
            if (at == impl.function_of.end()) return unknown(code->symbols[call.symbol]);
            const FunctionCode* callee = impl.codes[at->second].get();
            if (callee == nullptr) continue;
            if (callee->is_entry)
                return Status::error(ErrorCode::unsupported, "unsupported call of the entry '" + callee->name + "'");
            if (callee->formals.size() != call.arguments.size() || callee->returns.size() < call.returns.size()) {
                return Status::error(ErrorCode::invalid_argument,
                                     "a call of '" + callee->name + "' has the wrong number of parameters");
            }
        }
    }
    for (const ptx::VariableInfo& variable : impl.variables) {
        for (const ptx::Relocation& relocation : variable.relocations) {
            if (!known(relocation.symbol)) return unknown(relocation.symbol);
        }
    }
    return Status::ok();
}

std::shared_ptr<const Program> make_program(std::unique_ptr<Program::Impl> impl) {
    return std::make_shared<const Program>(std::move(impl));
}

bool is_strong(Linkage linkage) { return linkage == Linkage::visible; }

// Names that are private to one text get the number of the text when another text uses them too.
class Linker {
  public:
    Status add(const Program& program, size_t number, const std::unordered_set<std::string>& taken) {
        renamed_.clear();
        const Program::Impl& impl = program.impl();
        for (const auto& info : impl.functions) {
            if (info.linkage == Linkage::local && !info.is_entry) rename(info.name, number, taken);
        }
        for (const auto& info : impl.variables) {
            if (info.linkage == Linkage::local) rename(info.name, number, taken);
        }
        for (size_t i = 0; i < impl.functions.size(); ++i) {
            if (Status status = add_function(impl.functions[i], impl.codes[i]); !status) return status;
        }
        for (const auto& info : impl.variables) {
            if (Status status = add_variable(info); !status) return status;
        }
        return Status::ok();
    }
    std::unique_ptr<Program::Impl> take() { return std::move(out_); }

  private:
    void rename(const std::string& name, size_t number, const std::unordered_set<std::string>& taken) {
        if (taken.count(name)) renamed_[name] = name + "@" + std::to_string(number);
    }
    std::string name_of(const std::string& name) const {
        auto at = renamed_.find(name);
        return at == renamed_.end() ? name : at->second;
    }

    Status add_function(ptx::FunctionInfo info, const std::shared_ptr<const FunctionCode>& code) {
        info.name = name_of(info.name);
        auto renamed = code;
        if (code && !renamed_.empty()) {
            auto copy = std::make_shared<FunctionCode>(*code);
            for (std::string& symbol : copy->symbols) symbol = name_of(symbol);
            renamed = std::move(copy);
        }
        auto [at, is_new] = functions_.emplace(info.name, out_->functions.size());
        if (is_new) {
            out_->functions.push_back(std::move(info));
            out_->codes.push_back(std::move(renamed));
            return Status::ok();
        }
        ptx::FunctionInfo& have = out_->functions[at->second];
        if (!renamed) return Status::ok();
        bool have_code = out_->codes[at->second] != nullptr;
        if (have_code && is_strong(have.linkage) && is_strong(info.linkage)) return twice(info.name);
        if (!have_code || is_strong(info.linkage)) {
            have = std::move(info);
            out_->codes[at->second] = std::move(renamed);
        }
        return Status::ok();
    }

    Status add_variable(ptx::VariableInfo info) {
        info.name = name_of(info.name);
        for (ptx::Relocation& relocation : info.relocations) relocation.symbol = name_of(relocation.symbol);
        auto [at, is_new] = variables_.emplace(info.name, out_->variables.size());
        if (is_new) {
            out_->variables.push_back(std::move(info));
            return Status::ok();
        }
        ptx::VariableInfo& have = out_->variables[at->second];
        if (info.linkage == Linkage::external) return Status::ok();
        if (is_strong(have.linkage) && is_strong(info.linkage)) return twice(info.name);
        if (have.linkage == Linkage::external || is_strong(info.linkage) ||
            (have.linkage == Linkage::common && info.size_bytes > have.size_bytes))
            have = std::move(info);
        return Status::ok();
    }

    static Status twice(const std::string& name) {
        return Status::error(ErrorCode::invalid_argument, "'" + name + "' is defined in more than one text");
    }

    std::unique_ptr<Program::Impl> out_ = std::make_unique<Program::Impl>();
    std::unordered_map<std::string, size_t> functions_, variables_;
    std::unordered_map<std::string, std::string> renamed_;
};

}  // namespace

Program::Program(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;
const std::vector<ptx::FunctionInfo>& Program::functions() const { return impl_->functions; }
const std::vector<ptx::VariableInfo>& Program::variables() const { return impl_->variables; }
const std::vector<std::string>& Program::undefined() const { return impl_->undefined; }

Result<std::shared_ptr<const Program>> compile(std::string_view ptx, const CompileOptions& options) {
    if (ptx.size() > kMaxTextBytes) return Status::error(ErrorCode::unsupported, "the text is larger than 128 MiB");
    Result<ptx::ModuleText> text = ptx::parse(ptx);
    if (!text) return text.take_status();
    if (Status status = check_target(*text, options); !status) return status;
    auto impl = std::make_unique<Program::Impl>();
    if (Status status = add_functions(*text, *impl); !status) return status;
    if (Status status = add_aliases(*text, *impl); !status) return status;
    impl->variables = text->variables;
    impl->index();
    if (Status status = check_names(*impl); !status) return status;
    if (Status status = check_size(*impl); !status) return status;
    return make_program(std::move(impl));
}

Result<std::shared_ptr<const Program>> link(std::span<const std::shared_ptr<const Program>> programs) {
    if (programs.size() == 1) return programs[0];
    // Which names appear in more than one text.
    std::unordered_set<std::string> seen, shared;
    for (const auto& program : programs) {
        std::unordered_set<std::string> own;
        for (const auto& info : program->functions()) own.insert(info.name);
        for (const auto& info : program->variables()) own.insert(info.name);
        for (const std::string& name : own) {
            if (!seen.insert(name).second) shared.insert(name);
        }
    }
    Linker linker;
    for (size_t i = 0; i < programs.size(); ++i) {
        if (Status status = linker.add(*programs[i], i, shared); !status) return status;
    }
    auto impl = linker.take();
    impl->index();
    if (Status status = check_names(*impl); !status) return status;
    if (Status status = check_size(*impl); !status) return status;
    return make_program(std::move(impl));
}

}  // namespace weft::engine
