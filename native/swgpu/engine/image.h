// A kernel ready to run: the entry and every function it can reach, in one array of ops with all addresses filled in.
// Design: docs/design/software-gpu.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "swgpu/engine/code.h"
#include "swgpu/engine/engine.h"

namespace weft::engine {

struct FunctionEntry {
    const FunctionCode* code = nullptr;
    const Op* first = nullptr;
    uint64_t address = 0;  // as a value in the program
};

struct CallRecord {
    Callee kind = Callee::symbol;
    const FunctionEntry* callee = nullptr;  // of a direct call
    Ref target = kNoRef;
    uint32_t caller_rows_bytes = 0;
    uint32_t caller_frame_bytes = 0;
    std::vector<Slot> arguments;
    std::vector<Slot> returns;
};

// FunctionCode of the functions is kept alive by `program_codes`.
struct KernelImage {
    std::vector<std::shared_ptr<const FunctionCode>> program_codes;
    std::string name;
    ptx::FunctionInfo info;
    std::vector<Op> ops;
    std::vector<uint32_t> aux;
    std::vector<uint8_t> constants_storage;
    uint8_t* constants = nullptr;          // 64-byte aligned, inside constants_storage
    std::vector<FunctionEntry> functions;  // [0] is the entry
    std::vector<CallRecord> calls;
    uint64_t rows_bytes = 0;           // of a warp, for the deepest chain of calls
    uint64_t frame_bytes = 0;          // of a thread, without the stack for recursion
    bool has_unbounded_calls = false;  // recursion or indirect calls
    uint32_t static_shared_bytes = 0;
    uint32_t dynamic_shared_align = 16;
    std::vector<std::pair<uint64_t, uint64_t>> constant_ranges;  // of .const variables, for isspacep
};

// What can be said of an entry before addresses are known.
struct KernelPlan {
    std::vector<uint32_t> functions;  // indices into Program::Impl::codes, the entry first
    std::unordered_map<std::string, uint64_t> shared_offsets;
    uint32_t static_shared_bytes = 0;
    uint64_t rows_bytes = 0;
    uint64_t frame_bytes = 0;
    bool has_unbounded_calls = false;
};

struct Program::Impl {
    std::vector<ptx::FunctionInfo> functions;
    std::vector<ptx::VariableInfo> variables;
    std::vector<std::string> undefined;
    std::vector<std::shared_ptr<const FunctionCode>> codes;  // parallel to functions; null for declarations
    std::unordered_map<std::string, uint32_t> function_of;   // name -> the definition, or a declaration
    std::unordered_map<std::string, uint32_t> variable_of;

    // Fills the indices, `undefined`, and what FunctionInfo says about whole kernels.
    void index();
};

KernelPlan plan_kernel(const Program::Impl& program, uint32_t entry);
std::shared_ptr<const KernelImage> build_image(const Program::Impl& program, uint32_t entry,
                                               const std::vector<uint64_t>& addresses);

// The value of a function's address, for symbols and initialisers.
uint64_t function_address(uint32_t index);

class Kernel {
  public:
    explicit Kernel(std::shared_ptr<const KernelImage> image) : image_(std::move(image)) {}
    const KernelImage& image() const { return *image_; }

  private:
    std::shared_ptr<const KernelImage> image_;
};

}  // namespace weft::engine
