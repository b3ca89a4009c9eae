// Branches, calls, returns.
#include "swgpu/engine/control.h"
#include "swgpu/engine/lowering.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

bool Lowering::lower_bra() {
    take("uni");
    if (!done() || !operands(1)) return false;
    Draft branch = draft(control_handler(ControlOp::branch));
    branch.flow = Flow::branch;
    pending_.push_back({out_.drafts.size(), &operand(0), instruction_});
    emit(std::move(branch));
    return true;
}

bool Lowering::lower_brx() {
    if (!take("idx")) return unsupported();
    take("uni");
    if (!done() || !operands(2)) return false;
    Draft branch = draft(control_handler(ControlOp::indexed_branch));
    branch.flow = Flow::indexed_branch;
    if (!source(operand(0), Type::u32, branch.op.a)) return false;
    const ptx::Label* targets = operand(1).kind == Kind::name ? find_label_entry(operand(1)) : nullptr;
    if (targets == nullptr || !targets->is_targets) return fail("unknown list of targets");
    for (const Operand& target : targets->targets) pending_.push_back({out_.drafts.size(), &target, instruction_});
    emit(std::move(branch));
    return true;
}

// The actual parameters: registers, constants, or .param variables of the body.
bool Lowering::call_slots(const Operand& list, bool is_return, std::vector<Slot>& slots) {
    for (const Operand& element : list.elements) {
        Slot slot;
        if (element.kind == Kind::variable) {
            const ptx::Variable& variable = function_.variables[static_cast<size_t>(element.index)];
            if (variable.space != ptx::Space::frame) return fail("a parameter must be a .param variable");
            slot.frame_offset = variable.offset_bytes + static_cast<uint32_t>(element.offset);
            slot.size_bytes = static_cast<uint32_t>(variable.size_bytes);
        } else if (element.kind == Kind::reg || (element.kind == Kind::immediate && !is_return)) {
            bool wide = element.kind == Kind::immediate;
            slot.is_register = true;
            if (!source_any(element, Type::b64, slot.ref, wide)) return false;
            slot.row_lane_bytes = wide ? 8 : 4;
            slot.size_bytes = slot.row_lane_bytes;
        } else if (element.kind == Kind::sink && is_return) {
            slot.is_register = true;
            slot.ref = temporary(RowClass::wide);
            slot.row_lane_bytes = slot.size_bytes = 8;
        } else {
            return fail("unsupported parameter of a call");
        }
        slots.push_back(slot);
    }
    return true;
}

// call[.uni] [(returns),] function [, (arguments)] [, prototype or targets];
bool Lowering::lower_call() {
    take("uni");
    if (!done()) return false;
    const std::vector<Operand>& all = instruction_->operands;
    CallSite call;
    size_t at = 0;
    if (at < all.size() && all[at].kind == Kind::list && !call_slots(all[at++], true, call.returns)) return false;
    if (at >= all.size()) return fail("the function is missing");
    const Operand& target = all[at++];
    if (at < all.size() && all[at].kind == Kind::list && !call_slots(all[at++], false, call.arguments)) return false;
    bool is_indirect = target.kind == Kind::reg;
    if (at < all.size()) {
        const ptx::Label* label = all[at].kind == Kind::name ? find_label_entry(all[at]) : nullptr;
        if (!is_indirect || label == nullptr || (!label->is_prototype && !label->is_targets))
            return fail("unknown prototype");
        ++at;
    }
    if (at != all.size()) return fail("too many operands");
    if (is_indirect) {
        call.callee = Callee::indirect;
        if (!source(target, Type::u64, call.target)) return false;
    } else if (target.kind == Kind::name) {
        call.symbol = symbol_index(target.name);
        if (target.name == "vprintf") call.callee = Callee::vprintf;
        if (target.name == "__assertfail") call.callee = Callee::assertfail;
    } else {
        return fail("the callee is no function");
    }
    Draft draft = this->draft(control_handler(ControlOp::call));
    draft.call = static_cast<int32_t>(code_.calls.size());
    code_.calls.push_back(std::move(call));
    if (instruction_->guard >= 0)
        draft.op.guard = static_cast<Ref>(instruction_->guard) | (instruction_->guard_negated ? kVirtualNegated : 0);
    emit(std::move(draft));
    if (is_indirect) {
        Draft join = this->draft(control_handler(ControlOp::join));
        join.is_unguarded = true;
        emit(std::move(join));
    }
    return true;
}

bool Lowering::lower_ret() {
    take("uni");
    if (!done() || !operands(0)) return false;
    Draft ret = draft(control_handler(code_.is_entry ? ControlOp::exit : ControlOp::ret));
    ret.flow = instruction_->guard < 0 ? Flow::end : Flow::next;
    emit(std::move(ret));
    return true;
}

bool Lowering::lower_exit() {
    if (!done() || !operands(0)) return false;
    Draft exit = draft(control_handler(ControlOp::exit));
    exit.flow = instruction_->guard < 0 ? Flow::end : Flow::next;
    emit(std::move(exit));
    return true;
}

bool Lowering::lower_trap() {
    if (!done() || !operands(0)) return false;
    bool is_trap = instruction_->opcode == "trap";
    Draft trap = draft(control_handler(is_trap ? ControlOp::trap : ControlOp::breakpoint));
    emit(std::move(trap));
    return true;
}

bool Lowering::lower_nop() {
    instruction_->modifiers.empty() ? void() : void(take("mask"));
    if (!done() || !operands(0, 1)) return false;
    emit(draft(control_handler(ControlOp::nop)));
    return true;
}

const std::unordered_map<std::string_view, Lowering::Method>& Lowering::table() {
    using L = Lowering;
    static const std::unordered_map<std::string_view, Method> kTable = {
        {"add", &L::lower_addsub},
        {"sub", &L::lower_addsub},
        {"mul", &L::lower_mul},
        {"mad", &L::lower_mad},
        {"mul24", &L::lower_mul24},
        {"mad24", &L::lower_mul24},
        {"fma", &L::lower_fma},
        {"div", &L::lower_div},
        {"rem", &L::lower_rem},
        {"abs", &L::lower_abs_neg},
        {"neg", &L::lower_abs_neg},
        {"min", &L::lower_minmax},
        {"max", &L::lower_minmax},
        {"rcp", &L::lower_transcendental},
        {"sqrt", &L::lower_transcendental},
        {"rsqrt", &L::lower_transcendental},
        {"sin", &L::lower_transcendental},
        {"cos", &L::lower_transcendental},
        {"ex2", &L::lower_transcendental},
        {"lg2", &L::lower_transcendental},
        {"tanh", &L::lower_transcendental},
        {"copysign", &L::lower_copysign},
        {"testp", &L::lower_testp},
        {"sad", &L::lower_sad},
        {"popc", &L::lower_bit_count},
        {"clz", &L::lower_bit_count},
        {"brev", &L::lower_bit_count},
        {"bfind", &L::lower_bfind},
        {"bfe", &L::lower_bfe},
        {"bfi", &L::lower_bfi},
        {"fns", &L::lower_fns},
        {"dp4a", &L::lower_dot},
        {"dp2a", &L::lower_dot},
        {"szext", &L::lower_szext},
        {"bmsk", &L::lower_bmsk},
        {"prmt", &L::lower_prmt},
        {"and", &L::lower_logic},
        {"or", &L::lower_logic},
        {"xor", &L::lower_logic},
        {"not", &L::lower_logic},
        {"cnot", &L::lower_logic},
        {"lop3", &L::lower_lop3},
        {"shl", &L::lower_shift},
        {"shr", &L::lower_shift},
        {"shf", &L::lower_shf},
        {"selp", &L::lower_selp},
        {"slct", &L::lower_slct},
        {"setp", &L::lower_setp},
        {"set", &L::lower_set},
        {"addc", &L::lower_addc},
        {"subc", &L::lower_addc},
        {"madc", &L::lower_madc},
        {"mov", &L::lower_mov},
        {"cvt", &L::lower_cvt},
        {"cvta", &L::lower_cvta},
        {"isspacep", &L::lower_isspacep},
        {"ld", &L::lower_ld},
        {"ldu", &L::lower_ld},
        {"st", &L::lower_st},
        {"atom", &L::lower_atom},
        {"red", &L::lower_atom},
        {"prefetch", &L::lower_hint},
        {"prefetchu", &L::lower_hint},
        {"discard", &L::lower_hint},
        {"applypriority", &L::lower_hint},
        {"createpolicy", &L::lower_createpolicy},
        {"cp", &L::lower_cp_async},
        {"mbarrier", &L::lower_mbarrier},
        {"bra", &L::lower_bra},
        {"brx", &L::lower_brx},
        {"call", &L::lower_call},
        {"ret", &L::lower_ret},
        {"exit", &L::lower_exit},
        {"trap", &L::lower_trap},
        {"brkpt", &L::lower_trap},
        {"pmevent", &L::lower_nop},
        {"bar", &L::lower_bar},
        {"barrier", &L::lower_barrier},
        {"membar", &L::lower_fence},
        {"fence", &L::lower_fence},
        {"shfl", &L::lower_shfl},
        {"vote", &L::lower_vote},
        {"match", &L::lower_match},
        {"redux", &L::lower_redux},
        {"activemask", &L::lower_activemask},
        {"elect", &L::lower_elect},
        {"nanosleep", &L::lower_nanosleep},
        {"ldmatrix", &L::lower_ldmatrix},
        {"tex", &L::lower_tex},
        {"tld4", &L::lower_tld4},
        {"suld", &L::lower_suld},
        {"sust", &L::lower_sust},
        {"txq", &L::lower_txq},
        {"suq", &L::lower_txq},
        {"stmatrix", &L::lower_stmatrix},
        {"mma", &L::lower_mma},
    };
    return kTable;
}

}  // namespace weft::engine
