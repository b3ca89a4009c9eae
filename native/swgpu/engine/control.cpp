// Branches, joins, calls, exits.
#include "swgpu/engine/control.h"

#include <cstring>

#include "swgpu/engine/builtins.h"
#include "swgpu/engine/special.h"
#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

// A function without registers and local memory could call itself for ever; its joins are what it uses up.
constexpr size_t kMaxJoins = 4096;

Join& join_of(Context& context, int32_t index) { return context.warp->joins[static_cast<size_t>(index)]; }

Split split_here(const Context& context, const Op* pc, uint32_t mask) {
    Split split;
    split.pc = pc;
    split.mask = mask;
    split.join = context.join;
    split.rows = context.base[0];
    split.frame = context.frame;
    return split;
}

void put_aside(Context& context, const Op* pc, uint32_t mask) {
    context.warp->splits.push_back(split_here(context, pc, mask));
}

// The join at `meeting` for the lanes of the running split. Branches that meet where the innermost join does share it,
// which bounds the number of joins in loops.
void open_join(Context& context, const Op* meeting) {
    if (context.join >= 0) {
        const Join& top = join_of(context, context.join);
        if (top.pc == meeting && top.rows == context.base[0] && top.call == nullptr) return;
    }
    int32_t index = context.warp->new_join();
    Join& join = join_of(context, index);
    join.pc = meeting;
    join.expected = context.active;
    join.parent = context.join;
    join.rows = context.base[0];
    join.frame = context.frame;
    context.join = index;
}

const Op* run_branch(Context& context, const Op* op, uint32_t mask) {
    const Op* target = op + static_cast<int64_t>(op->imm);
    if (mask == context.active) return target;
    uint32_t fall = context.active & ~mask;
    if (op->aux == 0) {
        // The paths never meet: the one that lies first in the text goes first.
        bool back = target < op;
        put_aside(context, back ? op + 1 : target, back ? fall : mask);
        context.active = back ? mask : fall;
        return back ? target : op + 1;
    }
    const Op* meeting = op + static_cast<int32_t>(op->aux);
    open_join(context, meeting);
    if (target == meeting) {
        join_of(context, context.join).arrived |= mask;
        context.active = fall;
        return op + 1;
    }
    if (op + 1 == meeting) {
        join_of(context, context.join).arrived |= fall;
        context.active = mask;
        return target;
    }
    put_aside(context, target, mask);
    context.active = fall;
    return op + 1;
}

const Op* run_indexed_branch(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* list = context.aux + op->e / 4;
    const uint32_t* index = reinterpret_cast<const uint32_t*>(context.base[op->a & kConstantBit] + (op->a & ~3u));
    uint32_t count = list[0] >> 2, left = mask, others = context.active & ~mask;
    const Op* first = nullptr;
    uint32_t first_mask = 0;
    while (left != 0) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left)), value = index[lane], same = 0;
        if (value >= count)
            return raise_fault(context, op, FaultKind::invalid_pc, AddressSpace::global, lane, value, 0, false);
        for (uint32_t other = left; other != 0; other &= other - 1) {
            uint32_t candidate = static_cast<uint32_t>(__builtin_ctz(other));
            if (index[candidate] == value) same |= 1u << candidate;
        }
        left &= ~same;
        const Op* target = op + (static_cast<int32_t>(list[1 + value]) >> 2);
        if (same == context.active) return target;
        if (first == nullptr) {
            if (op->aux != 0) open_join(context, op + static_cast<int32_t>(op->aux));
            first = target;
            first_mask = same;
        } else {
            put_aside(context, target, same);
        }
    }
    if (others != 0) put_aside(context, op + 1, others);
    context.active = first_mask;
    return first;
}

const Op* run_join(Context& context, const Op* op, uint32_t mask) {
    context.executed -= static_cast<uint32_t>(__builtin_popcount(mask));
    while (context.join >= 0) {
        Join& join = join_of(context, context.join);
        if (join.pc != op || join.rows != context.base[0] || join.call != nullptr) return op + 1;
        join.arrived |= context.active;
        if (join.arrived != join.expected) return nullptr;
        context.active = join.arrived;
        context.warp->free_join(context.join);
        context.join = join.parent;
    }
    return op + 1;
}

// After lanes have left the joins from `index` up to (not including) `stop`: those that now wait for nobody go on. The
// running split is empty.
void settle_joins(Context& context, int32_t index, int32_t stop) {
    while (index != stop && index >= 0) {
        Join& join = join_of(context, index);
        int32_t parent = join.parent;
        if (join.expected != 0 && join.arrived != join.expected) return;
        if (join.expected != 0) {
            Split split;
            split.pc = join.pc;
            split.mask = join.arrived;
            split.join = parent;
            split.rows = join.rows;
            split.frame = join.frame;
            context.warp->splits.push_back(split);
            context.warp->free_join(index);
            return;
        }
        context.warp->free_join(index);
        index = parent;
    }
}

const Op* run_exit(Context& context, const Op* op, uint32_t mask) {
    for (int32_t at = context.join; at >= 0; at = join_of(context, at).parent) join_of(context, at).expected &= ~mask;
    context.active &= ~mask;
    context.warp->live &= ~mask;
    context.block->live_threads -= static_cast<uint32_t>(__builtin_popcount(mask));
    if (context.active == 0) settle_joins(context, context.join, -1);
    context.block->check_barriers();
    return context.active == 0 ? nullptr : op + 1;
}

uint8_t* slot_at(Context& context, const Slot& slot, uint8_t* rows, uint32_t frame, uint32_t lane) {
    if (!slot.is_register) return context.local + lane * context.local_stride + frame + slot.frame_offset;
    uint8_t* base = slot.ref & kConstantBit ? context.base[1] : rows;
    return base + (slot.ref & ~3u) + lane * slot.row_lane_bytes;
}

void copy_slots(Context& context, const std::vector<Slot>& to, uint8_t* to_rows, uint32_t to_frame,
                const std::vector<Slot>& from, uint8_t* from_rows, uint32_t from_frame, uint32_t mask) {
    for (size_t i = 0; i < to.size() && i < from.size(); ++i) {
        uint32_t size = to[i].size_bytes < from[i].size_bytes ? to[i].size_bytes : from[i].size_bytes;
        for (uint32_t left = mask; left != 0; left &= left - 1) {
            uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
            std::memcpy(slot_at(context, to[i], to_rows, to_frame, lane),
                        slot_at(context, from[i], from_rows, from_frame, lane), size);
        }
    }
}

const Op* enter_function(Context& context, const Op* op, const CallRecord& call, const FunctionEntry& callee,
                         uint32_t mask) {
    uint8_t* rows = context.base[0] + call.caller_rows_bytes;
    uint32_t frame = context.frame + call.caller_frame_bytes;
    if (context.warp->joins.size() >= kMaxJoins || rows + callee.code->rows_bytes > context.warp->rows_end ||
        frame + callee.code->frame_bytes > context.local_stride) {
        return raise_fault(context, op, FaultKind::stack_overflow, AddressSpace::local,
                           static_cast<uint32_t>(__builtin_ctz(mask)), frame, 0, true);
    }
    copy_slots(context, callee.code->formals, rows, frame, call.arguments, context.base[0], context.frame, mask);
    int32_t index = context.warp->new_join();
    Join& join = join_of(context, index);
    join.pc = op + 1;
    join.expected = context.active;
    join.arrived = context.active & ~mask;
    join.parent = context.join;
    join.rows = context.base[0];
    join.frame = context.frame;
    join.call = &call;
    join.callee = &callee;
    context.join = index;
    context.active = mask;
    context.base[0] = rows;
    context.frame = frame;
    return callee.first;
}

const FunctionEntry* function_at(const Context& context, uint64_t address) {
    for (const FunctionEntry& entry : context.image->functions) {
        if (entry.address == address && !entry.code->is_entry) return &entry;
    }
    return nullptr;
}

// Lanes that call different functions go one group at a time and meet at the join behind the call.
const Op* call_indirect(Context& context, const Op* op, const CallRecord& call, uint32_t mask) {
    const uint64_t* target =
        reinterpret_cast<const uint64_t*>(context.base[call.target & kConstantBit] + (call.target & ~3u));
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(mask)), same = 0;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t other = static_cast<uint32_t>(__builtin_ctz(left));
        if (target[other] == target[lane]) same |= 1u << other;
    }
    const FunctionEntry* callee = function_at(context, target[lane]);
    if (callee == nullptr || callee->code->formals.size() != call.arguments.size() ||
        callee->code->returns.size() != call.returns.size()) {
        return raise_fault(context, op, FaultKind::invalid_pc, AddressSpace::global, lane, target[lane], 0, false);
    }
    uint32_t rest = mask & ~same, idle = context.active & ~mask;
    if (rest != 0 || idle != 0) {
        open_join(context, op + 1);
        join_of(context, context.join).arrived |= idle;
        if (rest != 0) put_aside(context, op, rest);
        context.active = same;
    }
    return enter_function(context, op, call, *callee, same);
}

const Op* run_call(Context& context, const Op* op, uint32_t mask) {
    const CallRecord& call = context.image->calls[op->imm];
    switch (call.kind) {
        case Callee::symbol: return enter_function(context, op, call, *call.callee, mask);
        case Callee::indirect: return call_indirect(context, op, call, mask);
        case Callee::vprintf:
        case Callee::assertfail: break;
    }
    BuiltinArguments arguments{};
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        for (size_t i = 0; i < call.arguments.size() && i < arguments.size(); ++i) {
            std::memcpy(&arguments[i], slot_at(context, call.arguments[i], context.base[0], context.frame, lane),
                        call.arguments[i].size_bytes < 8 ? call.arguments[i].size_bytes : 8);
        }
        if (call.kind == Callee::assertfail) {
            report_assert(context, lane, arguments);
            if ((left & (left - 1)) != 0) continue;  // every thread tells of its own
            return raise_fault(context, op, FaultKind::assert_failed, AddressSpace::global, lane, 0, 0, false);
        }
        int32_t result = print_formatted(context, lane, arguments[0], arguments[1]);
        if (!call.returns.empty())
            std::memcpy(slot_at(context, call.returns[0], context.base[0], context.frame, lane), &result, 4);
    }
    return op + 1;
}

const Op* run_ret(Context& context, const Op* op, uint32_t mask) {
    int32_t at = context.join;
    while (at >= 0 && join_of(context, at).call == nullptr) {
        join_of(context, at).expected &= ~mask;
        at = join_of(context, at).parent;
    }
    if (at < 0) return run_exit(context, op, mask);
    Join& join = join_of(context, at);
    copy_slots(context, join.call->returns, join.rows, join.frame, join.callee->code->returns, context.base[0],
               context.frame, mask);
    join.arrived |= mask;
    context.active &= ~mask;
    if (context.active != 0) return op + 1;
    settle_joins(context, context.join, at);
    if (join.arrived != join.expected) return nullptr;
    context.active = join.arrived;
    context.base[0] = join.rows;
    context.frame = join.frame;
    context.join = join.parent;
    context.warp->free_join(at);
    return join.pc;
}

const Op* run_trap(Context& context, const Op* op, uint32_t mask) {
    return raise_fault(context, op, FaultKind::trap, AddressSpace::global, static_cast<uint32_t>(__builtin_ctz(mask)),
                       0, 0, false);
}

const Op* run_nop(Context&, const Op* op, uint32_t) { return op + 1; }

const Op* run_fence(Context&, const Op* op, uint32_t) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return op + 1;
}

// A thread that sleeps waits for others: the turn ends.
const Op* run_nanosleep(Context& context, const Op* op, uint32_t) {
    ++context.sync_ops;
    context.budget = 0;
    return op + 1;
}

uint32_t first_word(Context& context, Ref ref, uint32_t mask) {
    return reinterpret_cast<const uint32_t*>(context.base[ref & kConstantBit] + (ref & ~3u))[__builtin_ctz(mask)];
}

const Op* run_barrier(Context& context, const Op* op, uint32_t mask) {
    auto kind = static_cast<BarrierKind>(op->aux);
    uint32_t number = op->a == kNoRef ? 0 : first_word(context, op->a, mask);
    if (number >= kBarriers) {
        return raise_fault(context, op, FaultKind::illegal_instruction, AddressSpace::shared,
                           static_cast<uint32_t>(__builtin_ctz(mask)), number, 0, false);
    }
    Barrier& barrier = context.block->barriers[number];
    if (op->b != kNoRef) barrier.expected = first_word(context, op->b, mask);
    barrier.arrived += static_cast<uint32_t>(__builtin_popcount(mask));
    if (kind != BarrierKind::sync && kind != BarrierKind::arrive) {
        uint32_t value = *reinterpret_cast<const uint32_t*>(context.base[op->c & kConstantBit] + (op->c & ~3u));
        if (op->c & kNegatedBit) value = ~value;
        barrier.count += static_cast<uint32_t>(__builtin_popcount(value & mask));
    }
    if (kind == BarrierKind::arrive) {
        context.block->check_barrier(number);
        return op + 1;
    }
    Split split = split_here(context, op + 1, mask);
    split.state = SplitState::at_barrier;
    split.barrier = static_cast<uint8_t>(number);
    split.wait_op = op;
    context.warp->splits.push_back(split);
    context.active &= ~mask;
    context.block->check_barrier(number);
    if (context.active != 0) return op + 1;
    // The last to arrive goes on at once.
    Split& back = context.warp->splits.back();
    if (back.state != SplitState::ready) return nullptr;
    context.active = back.mask;
    const Op* next = back.pc;
    context.warp->splits.pop_back();
    return next;
}

const Op* run_barrier_warp(Context& context, const Op* op, uint32_t mask) {
    uint32_t members = op->a == kNoRef ? kFullMask : first_word(context, op->a, mask);
    return gather_members(context, op, mask, members) == 0 ? (context.active ? op + 1 : nullptr) : op + 1;
}

template <class T>
const Op* run_special(Context& context, const Op* op, uint32_t mask) {
    alignas(64) uint64_t value[kWarpLanes];
    read_special(context, static_cast<ptx::SpecialRegister>(op->imm & 0xff), static_cast<uint32_t>(op->imm >> 8),
                 value);
    T* d = reinterpret_cast<T*>(context.base[0] + op->d);
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
        if (mask >> i & 1) d[i] = static_cast<T>(value[i]);
    }
    return op + 1;
}

template <class T>
const Op* run_frame_address(Context& context, const Op* op, uint32_t mask) {
    T* d = reinterpret_cast<T*>(context.base[0] + op->d);
    T value = static_cast<T>(context.frame + op->imm);
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
        if (mask >> i & 1) d[i] = value;
    }
    return op + 1;
}

}  // namespace

Handler control_handler(ControlOp op) {
    switch (op) {
        case ControlOp::branch: return run_branch;
        case ControlOp::indexed_branch: return run_indexed_branch;
        case ControlOp::join: return run_join;
        case ControlOp::call: return run_call;
        case ControlOp::ret: return run_ret;
        case ControlOp::exit: return run_exit;
        case ControlOp::trap: return run_trap;
        case ControlOp::breakpoint:
        case ControlOp::nop: return run_nop;
        case ControlOp::special_32: return run_special<uint32_t>;
        case ControlOp::special_64: return run_special<uint64_t>;
        case ControlOp::frame_address_32: return run_frame_address<uint32_t>;
        case ControlOp::frame_address_64: return run_frame_address<uint64_t>;
        case ControlOp::fence: return run_fence;
        case ControlOp::nanosleep:
        case ControlOp::yield: return run_nanosleep;
        case ControlOp::barrier: return run_barrier;
        case ControlOp::barrier_warp: return run_barrier_warp;
    }
    return run_nop;
}

// Lanes of a warp may reach the same instruction in several splits; it runs once, with all of them. The others' splits
// go on behind it.
uint32_t gather_members(Context& context, const Op* op, uint32_t mask, uint32_t members) {
    Warp& warp = *context.warp;
    uint32_t missing = members & warp.live & ~mask;
    if (missing == 0 || warp.sync_forced) {
        warp.sync_forced = false;
        return mask;
    }
    uint32_t here = 0;
    for (const Split& split : warp.splits) {
        bool same = split.state == SplitState::at_sync && split.wait_op == op && split.rows == context.base[0];
        if (same) here |= split.mask;
    }
    if ((missing & ~here) == 0) {
        for (Split& split : warp.splits) {
            if (split.state != SplitState::at_sync || split.wait_op != op || split.rows != context.base[0]) continue;
            split.state = SplitState::ready;
            split.pc = op + 1;
        }
        return mask | here;
    }
    Split split = split_here(context, op, mask);
    split.state = SplitState::at_sync;
    split.wait_op = op;
    split.members = members;
    warp.splits.push_back(split);
    context.active &= ~mask;
    return 0;
}

}  // namespace weft::engine
