#include "swgpu/engine/image.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace weft::engine {
namespace {

// How deep a chain of calls with recursion or function pointers may get, in frames of the largest function.
constexpr uint32_t kUnboundedDepth = 96;

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

bool is_builtin(const std::string& name) { return name == "vprintf" || name == "__assertfail"; }

// Functions whose address is taken anywhere may be called through a pointer.
std::vector<uint32_t> address_taken(const Program::Impl& program) {
    std::vector<uint32_t> taken;
    auto add = [&](const std::string& name) {
        if (auto found = program.function_of.find(name); found != program.function_of.end())
            taken.push_back(found->second);
    };
    for (const auto& code : program.codes) {
        if (!code) continue;
        for (const ConstantFixup& fixup : code->constant_fixups) add(code->symbols[fixup.symbol]);
    }
    for (const ptx::VariableInfo& variable : program.variables) {
        for (const ptx::Relocation& relocation : variable.relocations) add(relocation.symbol);
    }
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    return taken;
}

class Planner {
  public:
    Planner(const Program::Impl& program, uint32_t entry)
        : program_(program),
          state_(program.codes.size(), 0),
          rows_(program.codes.size(), 0),
          frames_(program.codes.size(), 0) {
        visit(entry);
        plan_.rows_bytes = rows_[entry];
        plan_.frame_bytes = frames_[entry];
        if (plan_.has_unbounded_calls) add_unbounded();
        lay_out_shared();
    }
    KernelPlan take() { return std::move(plan_); }

  private:
    struct Visit {
        uint32_t function;
        std::vector<uint32_t> callees;
        size_t next = 0;
    };

    // Depth-first with a stack of its own, for a text may chain any number of calls. The sizes of a function include
    // those of the deepest chain below it.
    void visit(uint32_t entry) {
        std::vector<Visit> stack;
        enter(entry, stack);
        while (!stack.empty()) {
            Visit& top = stack.back();
            if (top.next < top.callees.size()) {
                uint32_t callee = top.callees[top.next++];
                if (state_[callee] == kOpen) plan_.has_unbounded_calls = true;
                if (state_[callee] == kNew) enter(callee, stack);
                continue;
            }
            leave(top);
            stack.pop_back();
        }
    }

    void enter(uint32_t function, std::vector<Visit>& stack) {
        const FunctionCode* code = program_.codes[function].get();
        if (code == nullptr) return;
        state_[function] = kOpen;
        plan_.functions.push_back(function);
        Visit visit{function, {}, 0};
        for (const CallSite& call : code->calls) {
            if (call.callee == Callee::symbol) {
                auto at = program_.function_of.find(code->symbols[call.symbol]);
                if (at != program_.function_of.end()) visit.callees.push_back(at->second);
            } else if (call.callee == Callee::indirect) {
                plan_.has_unbounded_calls = true;
                if (!taken_) taken_ = address_taken(program_);
                visit.callees.insert(visit.callees.end(), taken_->begin(), taken_->end());
            }
        }
        stack.push_back(std::move(visit));
    }

    void leave(const Visit& visit) {
        uint64_t rows = 0, frame = 0;
        for (uint32_t callee : visit.callees) {
            rows = std::max(rows, rows_[callee]);
            frame = std::max(frame, frames_[callee]);
        }
        rows_[visit.function] = program_.codes[visit.function]->rows_bytes + rows;
        frames_[visit.function] = program_.codes[visit.function]->frame_bytes + frame;
        state_[visit.function] = kDone;
    }

    void add_unbounded() {
        uint64_t rows = 0;
        for (uint32_t function : plan_.functions) rows = std::max<uint64_t>(rows, program_.codes[function]->rows_bytes);
        plan_.rows_bytes += rows * kUnboundedDepth;
    }

    // Variables that the kernel can reach, then those without a size, which all begin where the static ones end.
    void lay_out_shared() {
        uint64_t at = 0, dynamic_align = 16;
        std::vector<const ptx::VariableInfo*> dynamic;
        for (uint32_t function : plan_.functions) {
            for (const std::string& name : program_.codes[function]->symbols) {
                auto found = program_.variable_of.find(name);
                if (found == program_.variable_of.end() || plan_.shared_offsets.count(name)) continue;
                const ptx::VariableInfo& variable = program_.variables[found->second];
                if (variable.space != ptx::VariableSpace::shared) continue;
                if (variable.size_bytes == 0) {
                    dynamic.push_back(&variable);
                    dynamic_align = std::max<uint64_t>(dynamic_align, variable.align_bytes);
                    continue;
                }
                at = round_up(at, std::max(1u, variable.align_bytes));
                plan_.shared_offsets[name] = at;
                at += variable.size_bytes;
            }
        }
        if (!dynamic.empty()) at = round_up(at, dynamic_align);
        for (const ptx::VariableInfo* variable : dynamic) plan_.shared_offsets[variable->name] = at;
        plan_.static_shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(at, ~0u));
    }

    const Program::Impl& program_;
    KernelPlan plan_;
    static constexpr uint8_t kNew = 0, kOpen = 1, kDone = 2;
    std::vector<uint8_t> state_;
    std::vector<uint64_t> rows_, frames_;
    std::optional<std::vector<uint32_t>> taken_;
};

class Builder {
  public:
    Builder(const Program::Impl& program, uint32_t entry, const std::vector<uint64_t>& addresses)
        : program_(program),
          addresses_(addresses),
          plan_(plan_kernel(program, entry)),
          image_(std::make_shared<KernelImage>()) {
        image_->info = program.functions[entry];
        image_->name = image_->info.name;
        image_->rows_bytes = plan_.rows_bytes;
        image_->frame_bytes = plan_.frame_bytes;
        image_->has_unbounded_calls = plan_.has_unbounded_calls;
        image_->static_shared_bytes = plan_.static_shared_bytes;
        for (size_t i = 0; i < program.variables.size(); ++i) {
            const ptx::VariableInfo& variable = program.variables[i];
            if (variable.space == ptx::VariableSpace::constant)
                image_->constant_ranges.emplace_back(addresses[i], addresses[i] + variable.size_bytes);
        }
    }

    std::shared_ptr<const KernelImage> run() {
        size_t ops = 0, constants = 64, calls = 0;
        for (uint32_t function : plan_.functions) {
            ops += program_.codes[function]->ops.size();
            constants += program_.codes[function]->constants.size();
            calls += program_.codes[function]->calls.size();
        }
        // Pointers into these are kept, so they must not move.
        image_->ops.reserve(ops);
        image_->calls.reserve(calls);
        image_->functions.reserve(plan_.functions.size());
        image_->constants_storage.resize(constants);
        uintptr_t base = reinterpret_cast<uintptr_t>(image_->constants_storage.data());
        image_->constants = reinterpret_cast<uint8_t*>(round_up(base, 64));
        for (uint32_t function : plan_.functions) {
            entry_of_[function] = image_->functions.size();
            image_->program_codes.push_back(program_.codes[function]);
            image_->functions.push_back({program_.codes[function].get(), nullptr, function_address(function)});
        }
        for (size_t i = 0; i < plan_.functions.size(); ++i) add(*program_.codes[plan_.functions[i]], i);
        return image_;
    }

  private:
    uint64_t address_of(const std::string& name) const {
        if (auto at = plan_.shared_offsets.find(name); at != plan_.shared_offsets.end()) return at->second;
        if (auto at = program_.variable_of.find(name); at != program_.variable_of.end()) return addresses_[at->second];
        if (auto at = program_.function_of.find(name); at != program_.function_of.end())
            return function_address(at->second);
        return 0;
    }

    static void shift(Ref& ref, uint32_t constant_base) {
        if (ref != kNoRef && (ref & kConstantBit)) ref += constant_base;
    }

    void add_constants(const FunctionCode& code) {
        std::copy(code.constants.begin(), code.constants.end(), image_->constants + constant_base_);
        for (const ConstantFixup& fixup : code.constant_fixups) {
            uint64_t value = address_of(code.symbols[fixup.symbol]);
            for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
                uint8_t* at = image_->constants + constant_base_ + fixup.offset_bytes + lane * fixup.lane_bytes;
                uint64_t addend = 0;
                std::memcpy(&addend, at, fixup.lane_bytes);
                addend += value;
                std::memcpy(at, &addend, fixup.lane_bytes);
            }
        }
    }

    void add_call(const FunctionCode& code, const CallSite& call) {
        CallRecord record;
        record.kind = call.callee;
        record.target = call.target;
        shift(record.target, constant_base_);
        record.caller_rows_bytes = code.rows_bytes;
        record.caller_frame_bytes = code.frame_bytes;
        record.arguments = call.arguments;
        record.returns = call.returns;
        for (Slot& slot : record.arguments) shift(slot.ref, constant_base_);
        if (call.callee == Callee::symbol) {
            uint32_t function = program_.function_of.at(code.symbols[call.symbol]);
            record.callee = &image_->functions[entry_of_.at(function)];
        }
        image_->calls.push_back(std::move(record));
    }

    void add(const FunctionCode& code, size_t index) {
        size_t first = image_->ops.size(), lists = image_->aux.size(), calls = image_->calls.size();
        add_constants(code);
        for (const CallSite& call : code.calls) add_call(code, call);
        for (uint32_t word : code.lists) {
            shift(word, constant_base_);
            image_->aux.push_back(word);
        }
        image_->ops.insert(image_->ops.end(), code.ops.begin(), code.ops.end());
        for (const Fixup& fixup : code.fixups) {
            Op& op = image_->ops[first + fixup.op];
            switch (fixup.kind) {
                case FixupKind::list: op.e += static_cast<uint32_t>(lists) * 4; break;
                case FixupKind::call: op.imm += calls; break;
                case FixupKind::reference: {
                    Ref ref = static_cast<Ref>(op.imm);
                    shift(ref, constant_base_);
                    op.imm = ref;
                    break;
                }
                case FixupKind::symbol: op.imm += address_of(code.symbols[fixup.symbol]); break;
            }
        }
        for (size_t i = first; i < image_->ops.size(); ++i) {
            Op& op = image_->ops[i];
            for (Ref* ref : {&op.guard, &op.a, &op.b, &op.c, &op.e}) shift(*ref, constant_base_);
        }
        image_->functions[index].first = &image_->ops[first];
        constant_base_ += static_cast<uint32_t>(code.constants.size());
    }

    const Program::Impl& program_;
    const std::vector<uint64_t>& addresses_;
    KernelPlan plan_;
    std::shared_ptr<KernelImage> image_;
    std::unordered_map<uint32_t, size_t> entry_of_;
    uint32_t constant_base_ = 0;
};

}  // namespace

uint64_t function_address(uint32_t index) { return (kFirstWindow << 3) + (uint64_t{index} + 1) * 16; }

KernelPlan plan_kernel(const Program::Impl& program, uint32_t entry) { return Planner(program, entry).take(); }

std::shared_ptr<const KernelImage> build_image(const Program::Impl& program, uint32_t entry,
                                               const std::vector<uint64_t>& addresses) {
    return Builder(program, entry, addresses).run();
}

void Program::Impl::index() {
    function_of.clear();
    variable_of.clear();
    undefined.clear();
    for (uint32_t i = 0; i < functions.size(); ++i) {
        auto [at, is_new] = function_of.emplace(functions[i].name, i);
        if (!is_new && codes[i]) at->second = i;
    }
    for (uint32_t i = 0; i < variables.size(); ++i) {
        auto [at, is_new] = variable_of.emplace(variables[i].name, i);
        if (!is_new && variables[i].linkage != ptx::Linkage::external) at->second = i;
    }
    for (auto& [name, i] : function_of) {
        if (!codes[i] && !is_builtin(name)) undefined.push_back(name);
    }
    for (auto& [name, i] : variable_of) {
        const ptx::VariableInfo& variable = variables[i];
        if (variable.linkage == ptx::Linkage::external && variable.space != ptx::VariableSpace::shared)
            undefined.push_back(name);
    }
    std::sort(undefined.begin(), undefined.end());
    uint64_t const_bytes = 0;
    for (const ptx::VariableInfo& variable : variables) {
        if (variable.space == ptx::VariableSpace::constant) const_bytes += variable.size_bytes;
    }
    for (uint32_t i = 0; i < functions.size(); ++i) {
        if (!codes[i]) continue;
        functions[i].register_count = codes[i]->register_estimate;
        functions[i].const_bytes = static_cast<uint32_t>(std::min<uint64_t>(const_bytes, ~0u));
        if (!functions[i].is_entry) continue;
        KernelPlan plan = plan_kernel(*this, i);
        functions[i].static_shared_bytes = plan.static_shared_bytes;
        functions[i].local_bytes_per_thread = static_cast<uint32_t>(std::min<uint64_t>(plan.frame_bytes, ~0u));
    }
}

}  // namespace weft::engine
