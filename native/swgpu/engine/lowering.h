// Decodes the instructions of one function into drafts. One file per group of opcodes: lower_arithmetic.cpp,
// lower_convert.cpp, lower_memory.cpp, lower_control.cpp, lower_warp.cpp; shared helpers in lowering.cpp. An
// instruction whose modifiers are not all understood is refused, never ignored. Design: docs/design/software-gpu.md.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "swgpu/engine/draft.h"
#include "swgpu/engine/query.h"
#include "swgpu/ptx/ast.h"

namespace weft::engine {

using SymbolKinds = std::unordered_map<std::string_view, ptx::VariableSpace>;

class Lowering {
  public:
    using Method = bool (Lowering::*)();
    Lowering(const ptx::Function& function, const SymbolKinds& variables)
        : function_(function), variables_(variables) {}
    Result<FunctionCode> run();

  private:
    // lowering.cpp: modifiers of the current instruction
    bool fail(std::string_view text);
    bool unsupported();
    bool take(std::string_view name);
    std::string_view take_any(std::initializer_list<std::string_view> names);
    ptx::Type take_type();
    Rounding take_rounding();
    bool done();  // all modifiers used, else unsupported
    bool operands(size_t least, size_t most);
    bool operands(size_t count) { return operands(count, count); }
    const ptx::Operand& operand(size_t i) const { return instruction_->operands[i]; }

    // operands
    bool source(const ptx::Operand& operand, ptx::Type type, Ref& ref);
    bool source_any(const ptx::Operand& operand, ptx::Type type, Ref& ref, bool& is_wide);
    bool destination(const ptx::Operand& operand, ptx::Type type, Ref& ref);
    bool destination_any(const ptx::Operand& operand, Ref& ref, bool& is_wide);
    bool predicate_source(const ptx::Operand& operand, Ref& ref);
    bool predicate_destination(const ptx::Operand& operand, Ref& ref);
    bool integer_immediate(const ptx::Operand& operand, uint64_t& value);
    bool symbol_address(const ptx::Operand& operand, ptx::Type type, Ref& ref);
    bool address(const ptx::Operand& operand, AddressSpace space, Draft& draft);
    bool address_of_variable(const ptx::Variable& variable, AddressSpace space, Draft& draft);
    bool address_of_name(const ptx::Operand& base, AddressSpace space, Draft& draft);
    Ref constant(uint64_t value, RowClass row);
    Ref constant_symbol(uint32_t symbol, uint64_t addend, RowClass row);
    Ref constant_predicate(bool value) { return constant(value ? ~uint64_t{0} : 0, RowClass::predicate); }
    Ref temporary(RowClass row);
    uint32_t symbol_index(std::string_view name);
    uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

    // emission
    Draft draft(Handler handler) const;
    Draft& emit(Draft draft);
    bool emit_arithmetic(const ArithmeticQuery& query, std::initializer_list<ptx::Type> source_types, ptx::Type to);
    Handler arithmetic(const ArithmeticQuery& query);
    Handler move(ptx::Type type);

    bool lower_instruction();
    bool resolve_targets();
    bool find_label(const ptx::Operand& operand, int32_t& target);
    const ptx::Label* find_label_entry(const ptx::Operand& operand) const;
    bool add_formals(const std::vector<ptx::FormalParameter>& formals, std::vector<Slot>& slots);
    void finish(FunctionCode& code);

    // lower_arithmetic.cpp
    bool lower_addsub();
    bool lower_carry(std::string_view opcode);
    bool lower_addc() { return lower_carry(instruction_->opcode); }
    bool lower_madc() { return lower_mad_carry("madc"); }
    bool lower_mul();
    bool lower_mad();
    bool lower_mad_carry(std::string_view opcode);
    bool lower_mul24();
    bool lower_fma();
    bool lower_div();
    bool lower_rem();
    bool lower_abs_neg();
    bool lower_minmax();
    bool lower_transcendental();
    bool lower_copysign();
    bool lower_testp();
    bool lower_sad();
    bool lower_bit_count();
    bool lower_bfind();
    bool lower_bfe();
    bool lower_bfi();
    bool lower_fns();
    bool lower_dot();
    bool lower_szext();
    bool lower_bmsk();
    bool lower_prmt();
    bool lower_logic();
    bool lower_lop3();
    bool lower_shift();
    bool lower_shf();
    bool lower_selp();
    bool lower_slct();
    bool lower_setp();
    bool lower_set();
    bool take_compare(CompareQuery& query, std::string_view& combine);
    // lower_convert.cpp
    bool lower_mov();
    bool lower_mov_vector();
    bool lower_cvt();
    bool lower_cvt_pack();
    bool lower_cvta();
    bool lower_isspacep();
    // lower_memory.cpp
    bool lower_ld();
    bool lower_st();
    bool lower_atom();
    bool lower_hint();
    bool lower_createpolicy();
    bool lower_cp_async();
    bool lower_mbarrier();
    bool take_space(AddressSpace& space, bool& ordered);
    bool take_cache_hints(size_t& extra_operands);
    // lower_control.cpp
    bool lower_bra();
    bool lower_brx();
    bool lower_call();
    bool lower_ret();
    bool lower_exit();
    bool lower_trap();
    bool lower_nop();
    bool call_slots(const ptx::Operand& list, bool is_return, std::vector<Slot>& slots);
    // lower_warp.cpp
    bool lower_bar();
    bool lower_barrier();
    bool lower_fence();
    bool lower_shfl();
    bool lower_vote();
    bool lower_match();
    bool lower_redux();
    bool lower_activemask();
    bool lower_elect();
    bool lower_nanosleep();
    bool lower_ldmatrix();
    bool lower_stmatrix();
    bool lower_mma();
    bool emit_barrier(uint32_t kind, size_t first);
    // lower_texture.cpp
    bool lower_tex();
    bool lower_tld4();
    bool lower_suld();
    bool lower_sust();
    bool lower_txq();
    bool take_shape(uint32_t& aux, size_t& coordinates);
    bool take_surface(uint32_t& aux, size_t& coordinates, ptx::Type& type, size_t& count);
    bool texture_address(const ptx::Operand& operand, size_t coordinates, Draft& draft);
    bool texture_results(const ptx::Operand& operand, Draft& draft);

    static const std::unordered_map<std::string_view, Method>& table();

    const ptx::Function& function_;
    const SymbolKinds& variables_;
    const ptx::Instruction* instruction_ = nullptr;
    uint32_t used_ = 0;  // a bit per modifier
    Status error_;
    FunctionCode code_;
    DraftFunction out_;
    std::vector<int32_t> draft_of_instruction_;
    struct PendingBranch {
        size_t draft;
        const ptx::Operand* label;
        const ptx::Instruction* instruction;
    };
    std::vector<PendingBranch> pending_;  // branches whose label is still to be found
    std::map<std::pair<uint64_t, int>, Ref> constants_;
    std::unordered_map<std::string_view, uint32_t> symbols_;
    Ref carry_ = kNoRef;
};

}  // namespace weft::engine
