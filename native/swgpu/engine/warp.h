// A block of threads while it runs. A warp is a set of splits: groups of lanes with one program counter each. Where
// lanes part, a join records who is expected to meet again and where; see the design note for the rules of joins.
// Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "swgpu/engine/image.h"
#include "swgpu/engine/op.h"

namespace weft::engine {

enum class SplitState : uint8_t { ready, at_barrier, at_sync };

struct Split {
    const Op* pc = nullptr;  // where to go on
    uint32_t mask = 0;
    int32_t join = -1;
    uint8_t* rows = nullptr;
    uint32_t frame = 0;
    SplitState state = SplitState::ready;
    bool forced = false;          // at_sync: run with whoever is here
    uint8_t barrier = 0;          // at_barrier: its number
    uint32_t members = 0;         // at_sync: lanes that must take part
    const Op* wait_op = nullptr;  // at_barrier, at_sync: the instruction
};

struct Join {
    const Op* pc = nullptr;  // where lanes meet; of a call, where it returns to
    uint32_t expected = 0;
    uint32_t arrived = 0;
    int32_t parent = -1;
    uint32_t age = 0;  // turns for which some lanes have waited
    uint8_t* rows = nullptr;
    uint32_t frame = 0;
    const CallRecord* call = nullptr;  // of a call: where results go
    const FunctionEntry* callee = nullptr;
    bool in_use = false;
};

struct Warp {
    uint32_t index = 0;
    uint32_t live = 0;  // lanes that have not exited
    uint8_t* rows = nullptr;
    uint8_t* rows_end = nullptr;
    uint8_t* local = nullptr;
    std::vector<Split> splits;  // not running; the back runs next
    std::vector<Join> joins;
    bool sync_forced = false;  // of the running split

    int32_t new_join();
    void free_join(int32_t index) { joins[static_cast<size_t>(index)].in_use = false; }
    bool is_done() const { return live == 0; }
};

struct Barrier {
    uint32_t arrived = 0;
    uint32_t expected = 0;  // 0: all threads that live
    uint32_t count = 0;     // bar.red: true predicates
};

inline constexpr uint32_t kBarriers = 16;

// The memory of a block, kept by workers and handed from block to block.
class BlockMemory {
  public:
    BlockMemory() = default;
    ~BlockMemory();
    BlockMemory(const BlockMemory&) = delete;
    BlockMemory& operator=(const BlockMemory&) = delete;
    // False when there is no memory. Contents are undefined.
    bool reserve(size_t bytes);
    uint8_t* data() const { return data_; }

  private:
    uint8_t* data_ = nullptr;
    size_t bytes_ = 0;
};

struct LaunchData {
    std::shared_ptr<const KernelImage> image;
    Dim3 grid, block;
    std::vector<uint8_t> params;
    const MemoryMap* memory = nullptr;
    OutputSink* output = nullptr;
    uint64_t grid_id = 0;
    uint64_t grid_workspace = 0;
    uint32_t sm_count = 1;
    uint32_t threads = 0;  // per block
    uint32_t warps = 0;
    uint64_t shared_bytes = 0;
    uint32_t dynamic_shared_bytes = 0;
    uint64_t local_stride = 0;
    std::vector<uint32_t> tid[3];  // by linear thread, padded to whole warps
};

struct Block {
    const LaunchData* launch = nullptr;
    std::unique_ptr<BlockMemory> memory;
    uint64_t index = 0;
    Dim3 id;
    std::vector<Warp> warps;
    uint8_t* shared = nullptr;
    uint32_t live_threads = 0;
    uint32_t next_warp = 0;
    uint32_t quanta = 0;
    uint32_t sm = 0;
    Barrier barriers[kBarriers];

    bool start(const LaunchData& data, uint64_t block_index, std::unique_ptr<BlockMemory> reuse);
    // Runs up to `quantum` warp instructions; false when a fault is in the context.
    bool run(Context& context, uint64_t& quantum, const bool& stop);
    bool is_done() const { return live_threads == 0; }

    // After an arrival or an exit: lets the waiting go when a barrier is complete.
    void check_barrier(uint32_t number);
    void check_barriers();

  private:
    void enter(Context& context, Warp& warp);
    template <bool Profiled>
    static const Op* execute(Context& context, const Op* op);
    bool run_warp(Context& context, Warp& warp, int64_t budget);
    bool unstick();
};

// Warp-wide instructions: the lanes that take part now, or 0 when the split has been put aside to wait for others.
uint32_t gather_members(Context& context, const Op* op, uint32_t mask, uint32_t members);
// The host address of `bytes` at a generic address of one lane, or null.
uint8_t* host_pointer(Context& context, uint32_t lane, uint64_t address, uint64_t bytes, bool is_write);

}  // namespace weft::engine
