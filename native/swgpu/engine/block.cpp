// Runs the warps of a block in turns.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

constexpr int64_t kTurn = 2048;
// Turns after which lanes that wait at a join no longer do: soon when the others look as if they spin on memory that a
// waiting lane will write.
constexpr uint32_t kPatience = 64;
constexpr uint32_t kPatienceWhenSpinning = 2;

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

// Lanes that have arrived go on without the others, as on hardware with independent threads.
bool release_arrived(Warp& warp, uint32_t patience) {
    bool released = false;
    for (Join& join : warp.joins) {
        if (!join.in_use || join.arrived == 0 || join.age < patience) continue;
        Split split;
        split.pc = join.pc;
        split.mask = join.arrived;
        split.join = join.parent;
        split.rows = join.rows;
        split.frame = join.frame;
        warp.splits.insert(warp.splits.begin(), split);
        join.expected &= ~join.arrived;
        join.arrived = 0;
        join.age = 0;
        released = true;
    }
    return released;
}

void age_joins(Context& context, Warp& warp) {
    bool waits = false;
    for (Join& join : warp.joins) {
        if (join.in_use && join.arrived != 0) {
            ++join.age;
            waits = true;
        }
    }
    if (waits) release_arrived(warp, context.sync_ops > 0 ? kPatienceWhenSpinning : kPatience);
}

// Splits that wait for lanes which have exited in the meantime, or all of them when `force` is set, run their
// instruction again.
bool wake_sync(Warp& warp, bool force) {
    bool woken = false;
    for (Split& split : warp.splits) {
        if (split.state != SplitState::at_sync) continue;
        uint32_t here = 0;
        for (const Split& other : warp.splits) {
            if (other.state == SplitState::at_sync && other.wait_op == split.wait_op) here |= other.mask;
        }
        if (!force && (split.members & warp.live & ~here) != 0) continue;
        split.state = SplitState::ready;
        split.forced = force;
        woken = true;
        if (force) return true;
    }
    return woken;
}

}  // namespace

BlockMemory::~BlockMemory() { std::free(data_); }

bool BlockMemory::reserve(size_t bytes) {
    if (bytes <= bytes_) return true;
    std::free(data_);
    bytes_ = 0;
    data_ = static_cast<uint8_t*>(std::aligned_alloc(64, round_up(bytes, 64)));
    if (data_ != nullptr) bytes_ = bytes;
    return data_ != nullptr;
}

int32_t Warp::new_join() {
    for (size_t i = 0; i < joins.size(); ++i) {
        if (!joins[i].in_use) {
            joins[i] = Join{};
            joins[i].in_use = true;
            return static_cast<int32_t>(i);
        }
    }
    joins.emplace_back();
    joins.back().in_use = true;
    return static_cast<int32_t>(joins.size()) - 1;
}

bool Block::start(const LaunchData& data, uint64_t block_index, std::unique_ptr<BlockMemory> reuse) {
    launch = &data;
    index = block_index;
    id = {static_cast<uint32_t>(block_index % data.grid.x),
          static_cast<uint32_t>(block_index / data.grid.x % data.grid.y),
          static_cast<uint32_t>(block_index / data.grid.x / data.grid.y)};
    sm = static_cast<uint32_t>(block_index % std::max(1u, data.sm_count));
    memory = std::move(reuse);
    const KernelImage& image = *data.image;
    uint64_t rows = round_up(image.rows_bytes + 64, 128), shared_at = rows * data.warps;
    uint64_t local_at = shared_at + round_up(data.shared_bytes, 128), local = data.local_stride * kWarpLanes;
    if (!memory->reserve(local_at + local * data.warps)) return false;
    shared = memory->data() + shared_at;
    std::memset(shared, 0, data.shared_bytes);
    warps.resize(data.warps);
    live_threads = data.threads;
    next_warp = quanta = 0;
    for (Barrier& barrier : barriers) barrier = {};
    for (uint32_t w = 0; w < data.warps; ++w) {
        Warp& warp = warps[w];
        uint32_t threads = std::min(kWarpLanes, data.threads - w * kWarpLanes);
        warp.index = w;
        warp.live = threads == kWarpLanes ? kFullMask : (1u << threads) - 1;
        warp.rows = memory->data() + rows * w;
        warp.rows_end = warp.rows + rows;
        warp.local = memory->data() + local_at + local * w;
        warp.joins.clear();
        std::memset(warp.rows, 0, image.functions[0].code->rows_bytes);
        Split split;
        split.pc = image.functions[0].first;
        split.mask = warp.live;
        split.rows = warp.rows;
        warp.splits.assign(1, split);
    }
    return true;
}

void Block::enter(Context& context, Warp& warp) {
    context.warp = &warp;
    context.block = this;
    context.local = warp.local;
}

// The inner loop: runs the split in the context until it cannot go on (null) or the budget is used up.
template <bool Profiled>
const Op* Block::execute(Context& context, const Op* op) {
    while (op != nullptr && context.budget > 0) {
        --context.budget;
        uint32_t mask = context.active;
        if (op->guard != kNoRef) {
            uint32_t guard =
                *reinterpret_cast<const uint32_t*>(context.base[op->guard & kConstantBit] + (op->guard & ~3u));
            mask &= (op->guard & kNegatedBit) ? ~guard : guard;
            if (mask == 0) {
                ++op;
                continue;
            }
        }
        context.executed += static_cast<uint32_t>(__builtin_popcount(mask));
        if constexpr (Profiled) {
            const Op* now = op;
            auto begin = std::chrono::steady_clock::now();
            op = op->run(context, op, mask);
            OpProfile& entry = context.profile[now - context.image->ops.data()];
            ++entry.count;
            entry.lanes += static_cast<uint32_t>(__builtin_popcount(mask));
            entry.nanoseconds += static_cast<uint64_t>((std::chrono::steady_clock::now() - begin).count());
        } else {
            op = op->run(context, op, mask);
        }
    }
    return op;
}

// One turn of a warp: until `budget` instructions are done or no split can go on. False after a fault.
bool Block::run_warp(Context& context, Warp& warp, int64_t budget) {
    enter(context, warp);
    context.sync_ops = 0;
    context.budget = budget;
    while (context.budget > 0) {
        auto ready = std::find_if(warp.splits.rbegin(), warp.splits.rend(),
                                  [](const Split& s) { return s.state == SplitState::ready; });
        if (ready == warp.splits.rend()) {
            if (warp.splits.empty() || !wake_sync(warp, false)) return true;
            continue;
        }
        Split split = *ready;
        warp.splits.erase(std::next(ready).base());
        context.active = split.mask;
        context.base[0] = split.rows;
        context.frame = split.frame;
        context.join = split.join;
        warp.sync_forced = split.forced;
        const Op* op = split.pc;
        op = context.profile ? execute<true>(context, op) : execute<false>(context, op);
        if (context.fault.kind != FaultKind::none) return false;
        if (op != nullptr) {
            Split rest;
            rest.pc = op;
            rest.mask = context.active;
            rest.join = context.join;
            rest.rows = context.base[0];
            rest.frame = context.frame;
            warp.splits.insert(warp.splits.begin(), rest);
        }
    }
    age_joins(context, warp);
    return true;
}

// No split of any warp can run. False when nothing can be done about it.
bool Block::unstick() {
    bool moved = false;
    for (Warp& warp : warps) moved |= release_arrived(warp, 0);
    if (moved) return true;
    for (Warp& warp : warps) moved |= wake_sync(warp, false);
    if (moved) return true;
    for (Warp& warp : warps) moved |= wake_sync(warp, true);
    return moved;
}

bool Block::run(Context& context, uint64_t& quantum, const bool& stop) {
    ++quanta;
    while (quantum > 0 && !is_done()) {
        bool progress = false;
        uint32_t count = static_cast<uint32_t>(warps.size());
        for (uint32_t k = 0; k < count && quantum > 0 && !is_done(); ++k) {
            if (__atomic_load_n(&stop, __ATOMIC_RELAXED)) return true;
            Warp& warp = warps[next_warp];
            next_warp = next_warp + 1 == count ? 0 : next_warp + 1;
            bool can_run = std::any_of(warp.splits.begin(), warp.splits.end(),
                                       [](const Split& s) { return s.state == SplitState::ready; });
            if (!can_run) continue;
            progress = true;
            int64_t budget = std::min<int64_t>(kTurn, static_cast<int64_t>(std::min<uint64_t>(quantum, INT64_MAX)));
            bool good = run_warp(context, warp, budget);
            quantum -= std::min(quantum, static_cast<uint64_t>(budget - std::min<int64_t>(context.budget, budget - 1)));
            if (!good) return false;
        }
        if (!progress && !is_done() && !unstick()) {
            context.fault.kind = FaultKind::deadlock;
            context.fault.op = nullptr;
            for (Warp& warp : warps) {
                if (warp.splits.empty()) continue;
                context.warp = &warp;
                context.fault.op = warp.splits[0].wait_op;
                context.fault.lane = static_cast<uint32_t>(__builtin_ctz(warp.splits[0].mask | 1u << 31));
                break;
            }
            return false;
        }
    }
    return true;
}

void Block::check_barrier(uint32_t number) {
    Barrier& barrier = barriers[number];
    uint32_t expected = barrier.expected != 0 ? barrier.expected : live_threads;
    if (barrier.arrived == 0 || barrier.arrived < expected) return;
    for (Warp& warp : warps) {
        for (Split& split : warp.splits) {
            if (split.state != SplitState::at_barrier || split.barrier != number) continue;
            split.state = SplitState::ready;
            const Op* op = split.wait_op;
            if (op->d != kNoRef) {
                uint32_t* d = reinterpret_cast<uint32_t*>(split.rows + op->d);
                for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
                    if (split.mask >> lane & 1) d[lane] = barrier.count;
                }
            } else if (op->e != kNoRef) {
                bool all = op->imm != 0;  // and: every predicate; or: any
                uint32_t value = (all ? barrier.count == barrier.arrived : barrier.count != 0) ? kFullMask : 0;
                uint32_t* word = reinterpret_cast<uint32_t*>(split.rows + (op->e & ~3u));
                *word = (*word & ~split.mask) | (value & split.mask);
            }
        }
    }
    barrier = {};
}

void Block::check_barriers() {
    for (uint32_t i = 0; i < kBarriers; ++i) {
        if (barriers[i].arrived != 0) check_barrier(i);
    }
}

}  // namespace weft::engine
