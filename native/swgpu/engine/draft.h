// Ops while a function is being decoded: operands are numbers of virtual registers and constants, branches name blocks'
// first drafts. layout.h turns drafts into ops. Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <vector>

#include "swgpu/engine/code.h"

namespace weft::engine {

// A virtual reference: kNoRef, or a kind in the two top bits, the negation, and a number.
inline constexpr uint32_t kVirtualConstant = 1u << 30;
inline constexpr uint32_t kVirtualNegated = 1u << 29;
inline constexpr uint32_t kVirtualIndex = kVirtualNegated - 1;

enum class Flow : uint8_t { next, branch, indexed_branch, end };

struct Draft {
    Op op;
    Flow flow = Flow::next;
    bool e_is_source = false;
    bool has_list = false;
    uint8_t list_definitions = 0;  // how many leading entries of the list are written; the others are read
    std::vector<uint32_t> list;    // virtual references
    std::vector<int32_t> targets;  // numbers of drafts
    bool symbol_in_imm = false;
    uint32_t symbol = 0;
    bool reads_imm = false;             // Op::imm is a reference that is read
    bool is_unguarded = false;          // the guard of the instruction is not for this draft
    bool writes_imm_predicate = false;  // Op::imm is a reference to a predicate that is written (carry chains)
    int32_t call = -1;
};

enum class RowClass : uint8_t { predicate, word, wide, quad };

constexpr uint32_t bytes_of(RowClass row) {
    return row == RowClass::predicate ? 4 : row == RowClass::word ? 128 : row == RowClass::wide ? 256 : 512;
}

inline RowClass row_class(ptx::Type type) {
    if (type == ptx::Type::pred) return RowClass::predicate;
    if (type == ptx::Type::b128) return RowClass::quad;
    return ptx::size_of(type) == 8 ? RowClass::wide : RowClass::word;
}

struct DraftFunction {
    std::vector<Draft> drafts;
    std::vector<RowClass> registers;
    std::vector<uint32_t> constant_offsets;  // by number of constant: its offset in FunctionCode::constants
    std::vector<uint32_t> pinned;            // registers that a caller reads or writes: formals and returns
};

}  // namespace weft::engine
