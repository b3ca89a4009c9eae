// A function after decoding: ops with references that are still relative to the function, and what must be patched when
// a kernel image is put together (image.h). Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "swgpu/engine/op.h"
#include "swgpu/ptx/program.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {

inline constexpr uint32_t kRowBytes = 128;

// A formal or actual parameter: a register row, or bytes of the frame.
struct Slot {
    bool is_register = false;
    Ref ref = kNoRef;           // of the register
    uint32_t frame_offset = 0;  // of the bytes
    uint32_t size_bytes = 0;
    uint32_t row_lane_bytes = 4;  // bytes per lane of the register's row
};

enum class Callee : uint8_t { symbol, indirect, vprintf, assertfail };

struct CallSite {
    Callee callee = Callee::symbol;
    uint32_t symbol = 0;
    Ref target = kNoRef;  // of an indirect call
    std::vector<Slot> arguments;
    std::vector<Slot> returns;
};

enum class FixupKind : uint8_t {
    list,       // Op::e is an index (times 4) into the function's lists
    call,       // Op::imm is an index into the function's call sites
    symbol,     // the symbol's address is added to Op::imm
    reference,  // Op::imm is a reference
};

struct Fixup {
    uint32_t op = 0;
    FixupKind kind = FixupKind::list;
    uint32_t symbol = 0;
};

// A row of constants that holds the address of a symbol, plus what the row holds already.
struct ConstantFixup {
    uint32_t offset_bytes = 0;
    uint32_t lane_bytes = 8;
    uint32_t symbol = 0;
    bool is_generic = false;  // as a generic address
};

struct FunctionCode {
    std::string name;
    bool is_entry = false;
    std::vector<Op> ops;
    std::vector<uint32_t> lists;
    std::vector<uint8_t> constants;
    std::vector<Fixup> fixups;
    std::vector<ConstantFixup> constant_fixups;
    std::vector<CallSite> calls;
    std::vector<Slot> formals;
    std::vector<Slot> returns;
    std::vector<std::string> symbols;
    uint32_t rows_bytes = 0;   // of the register frame
    uint32_t frame_bytes = 0;  // of local memory per thread
    uint32_t register_estimate = 0;
};

}  // namespace weft::engine
