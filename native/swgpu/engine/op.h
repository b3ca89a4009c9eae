// The decoded form of a PTX instruction and what a handler sees while it runs one for a warp. This header is included
// by translation units built for different instruction sets, so it holds plain data and no functions with linkage.
// Design: docs/design/software-gpu.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "swgpu/engine/engine.h"

namespace weft::engine {

struct Op;
struct Context;
struct Warp;
struct Block;
struct KernelImage;

// Executes `op` for the lanes in `mask` (never 0) and returns the next op, or null when the running split of the warp
// cannot go on (it ended, waits, or faulted; Context tells).
using Handler = const Op* (*)(Context&, const Op*, uint32_t mask);

// A reference is the byte offset of a row, from the frame of the running function or, with bit 0 set, from the kernel's
// constants. Rows hold 32 lanes: 128 bytes for values of up to 32 bits, 256 for 64 bits, 512 for 128 bits. Predicates
// are one 32-bit word, a bit per lane; bit 1 set means negated.
using Ref = uint32_t;
inline constexpr uint32_t kConstantBit = 1;
inline constexpr uint32_t kNegatedBit = 2;
inline constexpr uint32_t kNoRef = ~0u;
inline constexpr uint32_t kFullMask = ~0u;

struct Op {
    Handler run = nullptr;
    Ref guard = kNoRef;
    uint32_t line = 0;
    Ref d = kNoRef;  // destinations
    Ref e = kNoRef;
    Ref a = kNoRef;  // sources
    Ref b = kNoRef;
    Ref c = kNoRef;
    uint32_t aux = 0;  // flags of the handler, or an index into KernelImage::aux
    uint64_t imm = 0;  // offset, branch distance in ops
};
static_assert(sizeof(Op) == 48);

enum class AddressSpace : uint8_t { global, shared, local, frame, kernel_param, generic, constant, param };

struct CachedRange {
    uint64_t begin = 1;
    uint64_t end = 0;
    bool writable = false;
};
inline constexpr uint32_t kCachedRanges = 8;

struct FaultRecord {
    FaultKind kind = FaultKind::none;
    AddressSpace space = AddressSpace::global;
    bool is_write = false;
    uint32_t lane = 0;
    uint32_t size_bytes = 0;
    uint64_t address = 0;
    const Op* op = nullptr;
};

struct OpProfile {
    uint64_t count = 0;
    uint64_t lanes = 0;
    uint64_t nanoseconds = 0;
};

struct Context {
    uint8_t* base[2] = {};  // [0] the running frame's rows, [1] the kernel's constants
    uint32_t active = 0;    // lanes of the running split
    uint32_t sync_ops = 0;  // atomics and ordered accesses since the turn began: a sign of spinning
    uint64_t executed = 0;  // thread-instructions
    int64_t budget = 0;     // warp instructions left in this turn
    uint8_t* shared = nullptr;
    uint64_t shared_bytes = 0;
    uint8_t* local = nullptr;  // of lane 0
    uint64_t local_stride = 0;
    uint32_t frame = 0;  // where the running function's frame begins in local memory
    uint32_t param_bytes = 0;
    const uint8_t* params = nullptr;
    const MemoryMap* memory = nullptr;
    uint64_t epoch = 0;
    uint32_t next_range = 0;
    int32_t join = -1;  // innermost join of the running split
    CachedRange ranges[kCachedRanges];
    const uint32_t* aux = nullptr;  // KernelImage::aux
    const KernelImage* image = nullptr;
    Warp* warp = nullptr;
    Block* block = nullptr;
    FaultRecord fault;
    OpProfile* profile = nullptr;  // by index of op, or null
    alignas(64) uint64_t address[kWarpLanes] = {};
};

// Generic windows. Their sizes bound what an offset can be.
inline constexpr uint64_t kSharedWindow = kFirstWindow;
inline constexpr uint64_t kLocalWindow = kFirstWindow << 1;
inline constexpr uint64_t kParamWindow = kFirstWindow << 2;
inline constexpr uint64_t kFunctionWindow = kFirstWindow << 3;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;

// Outside line of handlers: finds the range of a global access, or records the fault. In memory_slow.cpp.
bool find_range(Context& context, uint64_t address, uint64_t size_bytes, bool is_write);
// Always returns null, for `return fault(...)`.
const Op* raise_fault(Context& context, const Op* op, FaultKind kind, AddressSpace space, uint32_t lane,
                      uint64_t address, uint32_t size_bytes, bool is_write);

}  // namespace weft::engine
