// What a PTX text declares to the outside: functions with their parameter layout, and module-scope variables.
// Plain data, no code and no addresses. Design: docs/design/software-gpu.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::ptx {

// Linkage of a symbol. `local` names are private to their text; `common` merges with equal names of other texts.
enum class Linkage : uint8_t { local, visible, weak, common, external };

struct Parameter {
    std::string name;
    uint32_t offset_bytes = 0;
    uint32_t size_bytes = 0;
    uint32_t align_bytes = 1;
    bool is_pointer = false;  // carries .ptr
};

struct FunctionInfo {
    std::string name;
    bool is_entry = false;
    bool is_defined = false;  // false: a declaration whose body another text must bring
    Linkage linkage = Linkage::local;
    std::vector<Parameter> parameters;
    uint32_t parameter_bytes = 0;  // size of the packed launch buffer
    uint32_t static_shared_bytes = 0;
    uint32_t local_bytes_per_thread = 0;
    uint32_t const_bytes = 0;
    uint32_t register_count = 0;               // an estimate of 32-bit registers per thread, 1..255
    uint32_t max_threads = 0;                  // product of .maxntid, 0 when not given
    std::array<uint32_t, 3> required_block{};  // .reqntid, {0,0,0} when not given
    uint32_t min_blocks_per_sm = 0;            // .minnctapersm
    uint32_t ptx_version = 0;                  // 10 * major + minor, e.g. 78
    uint32_t target_sm = 0;                    // 10 * major + minor, e.g. 80
};

enum class VariableSpace : uint8_t { global, constant, shared };

// An initialiser holds the address of another symbol: 8 (or 4) bytes at `offset_bytes` become address(symbol) + addend.
struct Relocation {
    uint64_t offset_bytes = 0;
    uint8_t size_bytes = 8;
    uint8_t shift_bits = 0;  // of the address, before it is cut to size_bytes: 0xFF00(symbol) is size 1, shift 8
    std::string symbol;
    int64_t addend = 0;
};

struct VariableInfo {
    std::string name;
    VariableSpace space = VariableSpace::global;
    Linkage linkage = Linkage::local;
    uint64_t size_bytes = 0;  // 0 for `.extern .shared x[]`
    uint32_t align_bytes = 1;
    bool is_managed = false;
    std::vector<uint8_t> initializer;  // may be shorter than size_bytes; the rest is zero
    std::vector<Relocation> relocations;
};

}  // namespace weft::ptx
