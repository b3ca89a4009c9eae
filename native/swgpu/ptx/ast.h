// A parsed PTX text: registers and variables resolved by scope, instructions as opcode, modifiers and operands. The
// views point into the text, which must outlive this. Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "swgpu/ptx/program.h"
#include "swgpu/ptx/types.h"

namespace weft::ptx {

enum class SpecialRegister : uint8_t {
    tid,
    ntid,
    ctaid,
    nctaid,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
    dynamic_smem_size,
    total_smem_size,
    aggr_smem_size,
    envreg,
    envreg1,
    envreg2,
    pm,
    clusterid,
    nclusterid,
    cluster_ctaid,
    cluster_nctaid,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    reserved_smem_offset,
};

// Where a variable lives. `frame` is per-thread memory of a function: .local variables and .param variables of calls;
// `kernel_param` are the parameters of an entry.
enum class Space : uint8_t { none, global, constant, shared, local, param, frame, kernel_param, generic };

struct Variable {
    std::string name;
    Space space = Space::none;
    Type type = Type::b8;
    uint64_t size_bytes = 0;
    uint32_t align_bytes = 1;
    uint32_t offset_bytes = 0;  // inside its frame, parameter buffer
    bool is_pointer = false;
};

struct Operand {
    enum class Kind : uint8_t {
        none,
        reg,        // index
        immediate,  // bits; is_float tells how they were written (f64 bits unless is_f32_bits)
        special,    // special register `index`, component
        variable,   // variable `index` of the function, plus offset
        name,       // a symbol, function or label that is not of the function, plus offset
        address,    // [base + offset]; base is element 0, coordinates (a vector or one value) are element 1
        vector,     // {elements}
        list,       // (elements), of calls
        sink,       // _
    };
    Kind kind = Kind::none;
    bool negated = false;  // !p, or -x before a register
    bool is_float = false;
    bool is_f32_bits = false;
    uint8_t component = 0;
    int32_t index = -1;
    int32_t scope = 0;
    int64_t offset = 0;
    uint64_t bits = 0;
    std::string_view name;
    std::vector<Operand> elements;
    // p|q: the second destination is element 0 of a reg operand.
    bool has_second() const { return kind == Kind::reg || kind == Kind::sink ? !elements.empty() : false; }
};

struct Instruction {
    uint32_t line = 0;
    int32_t guard = -1;  // predicate register
    bool guard_negated = false;
    std::string_view opcode;
    std::vector<std::string_view> modifiers;
    std::vector<Operand> operands;
    std::string_view text;
};

struct Register {
    Type type = Type::b32;
};

struct Label {
    std::string_view name;
    int32_t scope = 0;
    uint32_t instruction = 0;      // index of the instruction that follows
    std::vector<Operand> targets;  // of .branchtargets / .calltargets; then `instruction` has no meaning
    bool is_targets = false;
    bool is_prototype = false;
};

struct FormalParameter {
    bool is_register = false;
    int32_t index = -1;  // of the register or the variable
    Type type = Type::b32;
    uint32_t size_bytes = 0;
    uint32_t align_bytes = 1;
};

struct Function {
    FunctionInfo info;
    std::vector<FormalParameter> returns;
    std::vector<FormalParameter> formals;
    std::vector<Register> registers;
    std::vector<Variable> variables;  // params, locals, call params; shared ones of the body are module variables
    std::vector<int32_t> scope_parent;
    std::vector<Label> labels;
    std::vector<Instruction> instructions;
    uint32_t line = 0;
};

struct Alias {
    std::string name;
    std::string target;
    uint32_t line = 0;
};

struct ModuleText {
    uint32_t ptx_version = 0;
    uint32_t target_sm = 0;
    std::vector<Function> functions;
    std::vector<VariableInfo> variables;
    std::vector<Alias> aliases;
};

}  // namespace weft::ptx
