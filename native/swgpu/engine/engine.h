// The engine of the software GPU: compiles PTX texts, links them, and executes launches in bounded steps on threads
// that the caller owns. It allocates no device memory, starts no threads and knows no contexts, streams or events;
// those are the driver's (native/swgpu/driver). Design: docs/design/software-gpu.md.
//
// Device addresses are addresses of this process. Shared, local and parameter memory have generic windows at and above
// kFirstWindow, so device memory must lie below it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "swgpu/ptx/program.h"

namespace weft::engine {

inline constexpr uint64_t kFirstWindow = uint64_t{1} << 48;
inline constexpr uint32_t kWarpLanes = 32;

// ---- compile and link
// ------------------------------------------------------------------------------------------------

struct CompileOptions {
    uint32_t device_sm = 80;  // 10 * major + minor; a text for a newer target is refused
};

// Immutable and shareable between contexts and threads.
class Program {
  public:
    struct Impl;
    explicit Program(std::unique_ptr<const Impl> impl);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Definitions and declarations, in the order of the text(s).
    const std::vector<ptx::FunctionInfo>& functions() const;
    const std::vector<ptx::VariableInfo>& variables() const;
    // Names that no text defines and that the engine does not bring itself (it brings vprintf and __assertfail).
    // Such a program can be linked with others but not loaded.
    const std::vector<std::string>& undefined() const;
    const Impl& impl() const { return *impl_; }

  private:
    std::unique_ptr<const Impl> impl_;
};

// The error text is fit for a JIT log: "line 42: unsupported instruction 'mma.sync...'". Code is `unsupported` for
// what the engine does not know, `version` for a target above device_sm, `invalid_argument` for broken text.
Result<std::shared_ptr<const Program>> compile(std::string_view ptx, const CompileOptions& options);

// One program from several: resolves .extern functions and variables. Fails on two strong definitions of a name; names
// that stay undefined are listed in undefined().
Result<std::shared_ptr<const Program>> link(std::span<const std::shared_ptr<const Program>> programs);

// ---- load
// ------------------------------------------------------------------------------------------------------------

class Kernel;  // an entry with all addresses resolved

class Module {
  public:
    struct Impl;
    // `addresses` runs parallel to program->variables(): where each .global and .const variable lies (0 for shared
    // ones). The caller then writes the images that initial_image() gives. Fails when the program has undefined names.
    static Result<std::shared_ptr<const Module>> load(std::shared_ptr<const Program> program,
                                                      std::vector<uint64_t> addresses);
    explicit Module(std::unique_ptr<Impl> impl);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    const Program& program() const;
    // The size_bytes of variables()[index], relocations applied.
    std::vector<uint8_t> initial_image(size_t index) const;
    // Null when there is no such entry. The kernel keeps what it needs alive. Thread-safe; built at the first call.
    std::shared_ptr<const Kernel> kernel(std::string_view name) const;

  private:
    std::unique_ptr<Impl> impl_;
};

// ---- memory
// ----------------------------------------------------------------------------------------------------------

struct MemoryRange {
    uint64_t begin = 0;
    uint64_t end = 0;  // exclusive; begin == end: nothing there
    bool writable = true;
};

// What a kernel may touch. Both calls come from all worker threads at once, lookup() about once per allocation, kernel
// and worker (results are cached until epoch() changes), so a lock inside is fine.
class MemoryMap {
  public:
    virtual ~MemoryMap() = default;
    // The accessible range that holds `address`.
    virtual MemoryRange lookup(uint64_t address) const = 0;
    // Changes whenever a range shrank or went away.
    virtual uint64_t epoch() const = 0;
};

// Text of the kernel's printf and assert, whole calls, from any worker thread.
class OutputSink {
  public:
    virtual ~OutputSink() = default;
    virtual void write(std::string_view text) = 0;
    // The text of an assertion, which belongs to standard error.
    virtual void write_error(std::string_view text) { write(text); }
};

// ---- launch
// ----------------------------------------------------------------------------------------------------------

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
};

struct LaunchConfig {
    Dim3 grid;
    Dim3 block;
    uint32_t dynamic_shared_bytes = 0;
    std::span<const uint8_t> parameters;  // packed at the offsets of FunctionInfo::parameters; copied
    const MemoryMap* memory = nullptr;    // outlives the launch
    OutputSink* output = nullptr;         // may be null; outlives the launch
    uint32_t stack_bytes = 1024;          // per thread, for recursion and indirect calls (CU_LIMIT_STACK_SIZE)
    bool cooperative = false;             // all blocks become resident at once
    uint64_t grid_id = 0;                 // %gridid
    uint64_t grid_workspace = 0;          // %envreg1 (high) and %envreg2: memory of a cooperative grid's barrier
    uint32_t sm_count = 1;                // %nsmid
    bool profile = false;                 // collect Launch::profile(); makes the launch several times slower
};

// What the instructions of one line of the PTX text cost.
struct LineProfile {
    uint32_t line = 0;
    uint64_t warp_instructions = 0;
    uint64_t thread_instructions = 0;
    uint64_t nanoseconds = 0;  // with about 25 ns of measuring in each warp instruction
};

enum class FaultKind : uint8_t {
    none,
    illegal_address,      // CUDA_ERROR_ILLEGAL_ADDRESS
    misaligned_address,   // CUDA_ERROR_MISALIGNED_ADDRESS
    illegal_instruction,  // trap-like: CUDA_ERROR_ILLEGAL_INSTRUCTION
    invalid_pc,           // indirect call to something that is no function: CUDA_ERROR_INVALID_PC
    trap,                 // CUDA_ERROR_LAUNCH_FAILED
    assert_failed,        // CUDA_ERROR_ASSERT
    stack_overflow,       // CUDA_ERROR_LAUNCH_FAILED
    deadlock,       // every thread of a block waits at a barrier that none can complete: CUDA_ERROR_LAUNCH_TIMEOUT
    cancelled,      // cancel() was called: CUDA_ERROR_LAUNCH_TIMEOUT
    out_of_memory,  // the host has no memory for a block: CUDA_ERROR_OUT_OF_MEMORY
};

std::string_view to_string(FaultKind kind);

struct Fault {
    FaultKind kind = FaultKind::none;
    std::string kernel;
    Dim3 block;   // %ctaid
    Dim3 thread;  // %tid
    uint64_t address = 0;
    uint32_t size_bytes = 0;
    bool is_write = false;
    std::string space;  // "global", "shared", "local", "param"
    uint32_t line = 0;  // of the PTX text
    // One line: "illegal address 0x7f... (write of 4 bytes, global) in kernel 'k', block (0,0,0), thread (33,0,0), PTX
    // line 17".
    std::string describe() const;
};

// Memory that a worker thread keeps between steps. One per thread, used by one thread at a time.
class Worker {
  public:
    struct Impl;
    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

enum class StepOutcome : uint8_t {
    progressed,  // executed up to a quantum; there is more to do
    no_work,     // all that is left is in the hands of other workers: do something else, or wait for them
    finished,    // the launch is over (every later step says so too)
};

class Launch {
  public:
    struct Impl;
    // Fails on a zero or too large dimension (block > 1024 threads), on shared memory above 227 KiB, and on a parameter
    // buffer that is too small.
    static Result<std::shared_ptr<Launch>> create(std::shared_ptr<const Kernel> kernel, const LaunchConfig& config);
    explicit Launch(std::unique_ptr<Impl> impl);
    ~Launch();
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    // Runs about `quantum` warp instructions (100,000 is about a millisecond) of some block. Thread-safe.
    StepOutcome step(Worker& worker, uint64_t quantum);
    // Ends the launch with FaultKind::cancelled; running steps return soon. Safe from any thread.
    void cancel();

    bool finished() const;
    // How many more workers could be of use now, at least; a hint for waking threads.
    uint32_t parallelism() const;
    // Valid once finished(); kind `none` on success.
    const Fault& fault() const;
    // Thread-instructions executed so far (lanes active per instruction, summed).
    uint64_t thread_instructions() const;
    // Empty unless LaunchConfig::profile was set; valid once finished().
    std::vector<LineProfile> profile() const;

  private:
    std::unique_ptr<Impl> impl_;
};

// "x86-64-v2", "x86-64-v3", "x86-64-v4" or "generic": which build of the handlers this machine uses. The environment
// variable WEFT_SWGPU_ISA=v2|v3|v4 lowers the choice, for tests.
std::string_view instruction_set();

}  // namespace weft::engine
