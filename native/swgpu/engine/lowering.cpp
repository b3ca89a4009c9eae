#include "swgpu/engine/lowering.h"

#include <algorithm>
#include <cstring>

#include "swgpu/engine/control.h"
#include "swgpu/engine/layout.h"
#include "swgpu/ptx/literal.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

namespace {

// An instruction as one line of bounded length.
std::string shown(std::string_view text) {
    constexpr size_t kMost = 160;
    std::string line;
    for (char c : text) {
        bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (space && (line.empty() || line.back() == ' ')) continue;
        line.push_back(space ? ' ' : c >= 32 && c < 127 ? c : '?');
        if (line.size() == kMost) return line + "...";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
}

}  // namespace

bool Lowering::fail(std::string_view text) {
    if (error_.is_ok()) {
        std::string line = "line " + std::to_string(instruction_ ? instruction_->line : function_.line) + ": ";
        error_ =
            Status::error(ErrorCode::invalid_argument,
                          line + std::string(text) + (instruction_ ? " in '" + shown(instruction_->text) + "'" : ""));
    }
    return false;
}

bool Lowering::unsupported() {
    if (error_.is_ok()) {
        error_ =
            Status::error(ErrorCode::unsupported, "line " + std::to_string(instruction_->line) +
                                                      ": unsupported instruction '" + shown(instruction_->text) + "'");
    }
    return false;
}

bool Lowering::take(std::string_view name) {
    for (size_t i = 0; i < instruction_->modifiers.size(); ++i) {
        if (!(used_ >> i & 1) && instruction_->modifiers[i] == name) {
            used_ |= 1u << i;
            return true;
        }
    }
    return false;
}

std::string_view Lowering::take_any(std::initializer_list<std::string_view> names) {
    for (std::string_view name : names) {
        if (take(name)) return name;
    }
    return {};
}

Type Lowering::take_type() {
    for (size_t i = 0; i < instruction_->modifiers.size(); ++i) {
        if (used_ >> i & 1) continue;
        if (auto type = ptx::type_from_name(instruction_->modifiers[i])) {
            used_ |= 1u << i;
            return *type;
        }
    }
    return Type::none;
}

Rounding Lowering::take_rounding() {
    static constexpr std::pair<std::string_view, Rounding> kNames[] = {
        {"rn", Rounding::rn},   {"rz", Rounding::rz},   {"rm", Rounding::rm},
        {"rp", Rounding::rp},   {"rna", Rounding::rna}, {"rni", Rounding::rni},
        {"rzi", Rounding::rzi}, {"rmi", Rounding::rmi}, {"rpi", Rounding::rpi}};
    for (auto [name, rounding] : kNames) {
        if (take(name)) return rounding;
    }
    return Rounding::none;
}

bool Lowering::done() {
    size_t count = instruction_->modifiers.size();
    return used_ == (count >= 32 ? ~0u : (1u << count) - 1) || unsupported();
}

bool Lowering::operands(size_t least, size_t most) {
    size_t count = instruction_->operands.size();
    return (count >= least && count <= most) || fail("wrong number of operands");
}

uint32_t Lowering::symbol_index(std::string_view name) {
    auto [at, is_new] = symbols_.emplace(name, static_cast<uint32_t>(code_.symbols.size()));
    if (is_new) code_.symbols.emplace_back(name);
    return at->second;
}

Ref Lowering::temporary(RowClass row) {
    out_.registers.push_back(row);
    return static_cast<Ref>(out_.registers.size() - 1);
}

Ref Lowering::constant(uint64_t value, RowClass row) {
    auto key = std::pair{value, static_cast<int>(row)};
    if (auto found = constants_.find(key); found != constants_.end()) return found->second;
    size_t offset = code_.constants.size(), bytes = row == RowClass::predicate ? kRowBytes : bytes_of(row);
    code_.constants.resize(offset + bytes);
    size_t lane = row == RowClass::quad ? 16 : row == RowClass::wide ? 8 : 4;
    for (size_t at = 0; at < bytes; at += lane)
        std::memcpy(&code_.constants[offset + at], &value, std::min<size_t>(lane, 8));
    out_.constant_offsets.push_back(static_cast<uint32_t>(offset));
    Ref ref = kVirtualConstant | static_cast<Ref>(out_.constant_offsets.size() - 1);
    constants_.emplace(key, ref);
    return ref;
}

Ref Lowering::constant_symbol(uint32_t symbol, uint64_t addend, RowClass row) {
    size_t offset = code_.constants.size(), bytes = bytes_of(row), lane = bytes / kWarpLanes;
    code_.constants.resize(offset + bytes);
    for (size_t at = 0; at < bytes; at += lane) std::memcpy(&code_.constants[offset + at], &addend, lane);
    code_.constant_fixups.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(lane), symbol, false});
    out_.constant_offsets.push_back(static_cast<uint32_t>(offset));
    return kVirtualConstant | static_cast<Ref>(out_.constant_offsets.size() - 1);
}

uint64_t Lowering::immediate_bits(const Operand& operand, Type type) {
    ptx::Literal literal{operand.bits, operand.is_float, operand.is_f32_bits};
    if (type == Type::f64) return ptx::f64_bits(literal);
    if (ptx::size_of(type) == 8) return operand.is_float ? ptx::f64_bits(literal) : operand.bits;
    if (operand.is_float) return ptx::f32_bits(literal);
    uint32_t size = ptx::size_of(type);
    if (size == 1 || size == 2) return operand.bits & 0xffff;
    return static_cast<uint32_t>(operand.bits);
}

// The address of a variable or function as a value.
bool Lowering::symbol_address(const Operand& operand, Type type, Ref& ref) {
    RowClass row = row_class(type);
    std::string_view name = operand.name;
    if (operand.kind == Kind::variable) {
        const ptx::Variable& variable = function_.variables[static_cast<size_t>(operand.index)];
        uint64_t offset = variable.offset_bytes + static_cast<uint64_t>(operand.offset);
        if (variable.space == ptx::Space::kernel_param) {
            if (row != RowClass::wide) return fail("the address of a parameter needs 64 bits");
            ref = constant(kParamWindow + offset, row);
            return true;
        }
        if (variable.space == ptx::Space::frame) {
            Draft move = draft(
                control_handler(row == RowClass::wide ? ControlOp::frame_address_64 : ControlOp::frame_address_32));
            ref = move.op.d = temporary(row);
            move.op.imm = offset;
            emit(std::move(move));
            return true;
        }
        name = variable.name;
    }
    if (row != RowClass::wide && row != RowClass::word) return fail("an address needs 32 or 64 bits");
    ref = constant_symbol(symbol_index(name), static_cast<uint64_t>(operand.offset), row);
    return true;
}

bool Lowering::source_any(const Operand& operand, Type type, Ref& ref, bool& is_wide) {
    is_wide = ptx::size_of(type) == 8;
    switch (operand.kind) {
        case Kind::reg: {
            if (operand.has_second()) return fail("unexpected '|'");
            Type have = function_.registers[static_cast<size_t>(operand.index)].type;
            if (have == Type::pred || operand.negated) return fail("expected a value, found a predicate");
            is_wide = ptx::size_of(have) == 8;
            if (ptx::size_of(have) == 16 && type != Type::b128) return fail("unexpected 128-bit register");
            ref = static_cast<Ref>(operand.index);
            return true;
        }
        case Kind::immediate: ref = constant(immediate_bits(operand, type), row_class(type)); return true;
        case Kind::special: {
            auto which = static_cast<ptx::SpecialRegister>(operand.index);
            bool wide_value = which == ptx::SpecialRegister::clock64 || which == ptx::SpecialRegister::globaltimer ||
                              (which == ptx::SpecialRegister::gridid && is_wide);
            if (operand.component == 255) return fail("a component is missing");
            Draft move = draft(control_handler(wide_value || is_wide ? ControlOp::special_64 : ControlOp::special_32));
            is_wide = wide_value || is_wide;
            ref = move.op.d = temporary(is_wide ? RowClass::wide : RowClass::word);
            move.op.imm = static_cast<uint64_t>(operand.index) | uint64_t{operand.component} << 8;
            emit(std::move(move));
            return true;
        }
        case Kind::variable:
        case Kind::name: return symbol_address(operand, type, ref);
        default: return fail("unexpected kind of operand");
    }
}

bool Lowering::source(const Operand& operand, Type type, Ref& ref) {
    bool is_wide = false;
    if (!source_any(operand, type, ref, is_wide)) return false;
    if (is_wide != (ptx::size_of(type) == 8) ||
        (type == Type::b128) != (operand.kind == Kind::reg &&
                                 ptx::size_of(function_.registers[static_cast<size_t>(operand.index)].type) == 16)) {
        return fail("an operand has the wrong size");
    }
    return true;
}

bool Lowering::destination_any(const Operand& operand, Ref& ref, bool& is_wide) {
    if (operand.kind == Kind::sink) {
        ref = temporary(is_wide ? RowClass::wide : RowClass::word);
        return true;
    }
    if (operand.kind != Kind::reg) return fail("the destination is no register");
    Type have = function_.registers[static_cast<size_t>(operand.index)].type;
    if (have == Type::pred) return fail("the destination is a predicate");
    is_wide = ptx::size_of(have) == 8;
    ref = static_cast<Ref>(operand.index);
    return true;
}

bool Lowering::destination(const Operand& operand, Type type, Ref& ref) {
    bool is_wide = ptx::size_of(type) == 8;
    if (!destination_any(operand, ref, is_wide)) return false;
    if (out_.registers[ref] != row_class(type)) return fail("the destination has the wrong size");
    return true;
}

bool Lowering::predicate_source(const Operand& operand, Ref& ref) {
    if (operand.kind == Kind::immediate) {
        ref = constant_predicate(operand.bits != 0);
        return true;
    }
    if (operand.kind != Kind::reg || function_.registers[static_cast<size_t>(operand.index)].type != Type::pred) {
        return fail("expected a predicate");
    }
    ref = static_cast<Ref>(operand.index) | (operand.negated ? kVirtualNegated : 0);
    return true;
}

bool Lowering::predicate_destination(const Operand& operand, Ref& ref) {
    if (operand.kind == Kind::sink) {
        ref = temporary(RowClass::predicate);
        return true;
    }
    if (operand.negated) return fail("a destination cannot be negated");
    return predicate_source(operand, ref);
}

bool Lowering::integer_immediate(const Operand& operand, uint64_t& value) {
    if (operand.kind != Kind::immediate || operand.is_float) return fail("expected an integer constant");
    value = operand.bits;
    return true;
}

bool Lowering::address_of_variable(const ptx::Variable& variable, AddressSpace space, Draft& draft) {
    draft.op.imm += variable.offset_bytes;
    switch (variable.space) {
        case ptx::Space::kernel_param:
            if (space != AddressSpace::param) return fail("a parameter is addressed in another state space");
            draft.op.aux |= static_cast<uint32_t>(AddressSpace::kernel_param);
            return true;
        case ptx::Space::frame:
            if (space != AddressSpace::param && space != AddressSpace::local)
                return fail("a local variable is addressed in another state space");
            draft.op.aux |= static_cast<uint32_t>(AddressSpace::frame);
            return true;
        default: break;
    }
    draft.symbol_in_imm = true;
    draft.symbol = symbol_index(variable.name);
    if (space == AddressSpace::generic && variable.space == ptx::Space::shared) space = AddressSpace::shared;
    draft.op.aux |= static_cast<uint32_t>(space);
    return true;
}

bool Lowering::address_of_name(const Operand& base, AddressSpace space, Draft& draft) {
    auto found = variables_.find(base.name);
    if (found == variables_.end()) return fail("unknown name '" + std::string(base.name) + "'");
    if (space == AddressSpace::generic && found->second == ptx::VariableSpace::shared) space = AddressSpace::shared;
    bool is_shared = found->second == ptx::VariableSpace::shared;
    if (is_shared != (space == AddressSpace::shared)) return fail("a variable is addressed in another state space");
    draft.symbol_in_imm = true;
    draft.symbol = symbol_index(base.name);
    draft.op.aux |= static_cast<uint32_t>(space);
    return true;
}

bool Lowering::address(const Operand& operand, AddressSpace space, Draft& draft) {
    // Old texts name the variable without brackets.
    if (operand.kind != Kind::address || operand.elements.size() != 1) return fail("expected an address");
    const Operand& base = operand.elements[0];
    draft.op.imm = static_cast<uint64_t>(operand.offset) + static_cast<uint64_t>(base.offset);
    if (base.kind == Kind::reg) {
        Type have = function_.registers[static_cast<size_t>(base.index)].type;
        if (ptx::size_of(have) != 4 && ptx::size_of(have) != 8) return fail("an address register has 32 or 64 bits");
        if (ptx::size_of(have) == 4) draft.op.aux |= memory_flags::kNarrowAddress;
        draft.op.a = static_cast<Ref>(base.index);
        draft.op.aux |= static_cast<uint32_t>(space);
        return true;
    }
    draft.op.aux |= memory_flags::kNoBase;
    if (base.kind == Kind::immediate) {
        draft.op.imm += base.bits;
        draft.op.aux |= static_cast<uint32_t>(space);
        return true;
    }
    if (base.kind == Kind::variable)
        return address_of_variable(function_.variables[static_cast<size_t>(base.index)], space, draft);
    if (base.kind == Kind::name) return address_of_name(base, space, draft);
    return fail("unsupported address");
}

Draft Lowering::draft(Handler handler) const {
    Draft draft;
    draft.op.run = handler;
    draft.op.line = instruction_ ? instruction_->line : 0;
    return draft;
}

Draft& Lowering::emit(Draft draft) {
    // The reads of special registers before a guarded instruction need no guard.
    out_.drafts.push_back(std::move(draft));
    return out_.drafts.back();
}

Handler Lowering::arithmetic(const ArithmeticQuery& query) {
    const HandlerSet& set = handler_set();
    Handler handler = nullptr;
    if (ptx::is_half(query.type))
        handler = set.half(query);
    else if (query.type == Type::f32 || query.type == Type::f64)
        handler = set.single(query);
    else
        handler = set.integer(query);
    if (handler == nullptr) unsupported();
    return handler;
}

Handler Lowering::move(Type type) {
    ArithmeticQuery query;
    query.type = ptx::size_of(type) == 8 ? Type::b64 : Type::b32;
    return handler_set().integer(query);
}

// d, then one operand per source type; the handler is chosen first so that the message names the instruction.
bool Lowering::emit_arithmetic(const ArithmeticQuery& query, std::initializer_list<Type> source_types, Type to) {
    if (!done() || !operands(source_types.size() + 1)) return false;
    Handler handler = arithmetic(query);
    if (handler == nullptr) return false;
    Draft draft = this->draft(handler);
    // Read by the handlers of directed rounding only.
    draft.op.aux = static_cast<uint32_t>(query.rounding) | uint32_t{query.sat} << 8;
    Ref* const slots[] = {&draft.op.a, &draft.op.b, &draft.op.c, &draft.op.e};
    size_t i = 0;
    for (Type type : source_types) {
        if (!source(operand(i + 1), type, *slots[i])) return false;
        draft.e_is_source = i == 3;
        ++i;
    }
    if (!destination(operand(0), to, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_instruction() {
    used_ = 0;
    if (instruction_->modifiers.size() > 31) return unsupported();
    auto method = table().find(instruction_->opcode);
    if (method == table().end()) return unsupported();
    size_t first = out_.drafts.size();
    if (!(this->*method->second)()) return false;
    if (instruction_->guard >= 0 && out_.drafts.size() > first && !out_.drafts.back().is_unguarded) {
        // All but the last draft only fetch operands.
        Draft& last = out_.drafts.back();
        last.op.guard = static_cast<Ref>(instruction_->guard) | (instruction_->guard_negated ? kVirtualNegated : 0);
    }
    return true;
}

const ptx::Label* Lowering::find_label_entry(const Operand& operand) const {
    for (int32_t scope = operand.scope; scope >= 0; scope = function_.scope_parent[static_cast<size_t>(scope)]) {
        for (const ptx::Label& label : function_.labels) {
            if (label.scope == scope && label.name == operand.name) return &label;
        }
    }
    return nullptr;
}

bool Lowering::find_label(const Operand& operand, int32_t& target) {
    const ptx::Label* label = operand.kind == Kind::name ? find_label_entry(operand) : nullptr;
    if (label == nullptr || label->is_targets || label->is_prototype)
        return fail("unknown label '" + std::string(operand.name) + "'");
    target = draft_of_instruction_[label->instruction];
    return true;
}

bool Lowering::resolve_targets() {
    for (const PendingBranch& branch : pending_) {
        instruction_ = branch.instruction;
        int32_t target = 0;
        if (!find_label(*branch.label, target)) return false;
        out_.drafts[branch.draft].targets.push_back(target);
    }
    return true;
}

bool Lowering::add_formals(const std::vector<ptx::FormalParameter>& formals, std::vector<Slot>& slots) {
    for (const ptx::FormalParameter& formal : formals) {
        Slot slot;
        slot.size_bytes = formal.size_bytes;
        if (formal.is_register) {
            if (formal.type == Type::pred || formal.type == Type::b128)
                return fail("unsupported type of a register parameter");
            slot.is_register = true;
            slot.ref = static_cast<Ref>(formal.index);
            slot.row_lane_bytes = ptx::size_of(formal.type) == 8 ? 8 : 4;
            out_.pinned.push_back(slot.ref);
        } else {
            slot.frame_offset = function_.variables[static_cast<size_t>(formal.index)].offset_bytes;
        }
        slots.push_back(slot);
    }
    return true;
}

Result<FunctionCode> Lowering::run() {
    code_.name = function_.info.name;
    code_.is_entry = function_.info.is_entry;
    code_.frame_bytes = function_.info.local_bytes_per_thread;
    for (const ptx::Register& reg : function_.registers) out_.registers.push_back(row_class(reg.type));
    bool good = true;
    if (!code_.is_entry)
        good = add_formals(function_.formals, code_.formals) && add_formals(function_.returns, code_.returns);
    for (const ptx::Instruction& instruction : function_.instructions) {
        if (!good) break;
        instruction_ = &instruction;
        draft_of_instruction_.push_back(static_cast<int32_t>(out_.drafts.size()));
        good = lower_instruction();
    }
    // A body may end without ret.
    draft_of_instruction_.push_back(static_cast<int32_t>(out_.drafts.size()));
    Draft last = draft(control_handler(code_.is_entry ? ControlOp::exit : ControlOp::ret));
    last.flow = Flow::end;
    emit(std::move(last));
    if (!good || !resolve_targets()) return std::move(error_);
    lay_out(out_, code_);
    return std::move(code_);
}

}  // namespace weft::engine
