// Barriers, fences and warp-wide instructions.
#include "swgpu/engine/collective.h"
#include "swgpu/engine/control.h"
#include "swgpu/engine/lowering.h"
#include "swgpu/engine/matrix.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

// [d|p,] barrier [, threads] [, predicate]
bool Lowering::emit_barrier(uint32_t kind_bits, size_t first) {
    auto kind = static_cast<BarrierKind>(kind_bits);
    bool is_red = kind != BarrierKind::sync && kind != BarrierKind::arrive;
    size_t count = instruction_->operands.size() - first, least = kind == BarrierKind::arrive ? 2 : is_red ? 2 : 1;
    if (count < least || count > least + (kind == BarrierKind::arrive ? 0 : 1)) return fail("wrong number of operands");
    Draft barrier = draft(control_handler(ControlOp::barrier));
    barrier.op.aux = kind_bits;
    if (!source(operand(first), Type::u32, barrier.op.a)) return false;
    bool has_threads = is_red ? count == 3 : count == 2;
    if (has_threads && !source(operand(first + 1), Type::u32, barrier.op.b)) return false;
    if (is_red && !predicate_source(operand(first + count - 1), barrier.op.c)) return false;
    if (kind == BarrierKind::red_popc && !destination(operand(0), Type::u32, barrier.op.d)) return false;
    if ((kind == BarrierKind::red_and || kind == BarrierKind::red_or) &&
        !predicate_destination(operand(0), barrier.op.e))
        return false;
    barrier.op.imm = kind == BarrierKind::red_and;
    emit(std::move(barrier));
    return true;
}

bool Lowering::lower_bar() {
    if (take("warp")) {
        if (!take("sync")) return unsupported();
        if (!done() || !operands(1)) return false;
        Draft barrier = draft(control_handler(ControlOp::barrier_warp));
        if (!source(operand(0), Type::b32, barrier.op.a)) return false;
        emit(std::move(barrier));
        return true;
    }
    return lower_barrier();
}

bool Lowering::lower_barrier() {
    if (take("cluster")) {
        // A cluster is one block here.
        bool is_wait = take("wait");
        if (!is_wait && !take("arrive")) return unsupported();
        take_any({"acquire", "release", "relaxed"});
        take("aligned");
        if (!done() || !operands(0)) return false;
        Draft barrier = draft(control_handler(is_wait ? ControlOp::barrier : ControlOp::nop));
        barrier.op.aux = static_cast<uint32_t>(BarrierKind::sync);
        if (is_wait) barrier.op.a = constant(15, RowClass::word);
        emit(std::move(barrier));
        return true;
    }
    take("cta");
    take("aligned");
    if (take("red")) {
        std::string_view what = take_any({"popc", "and", "or"});
        Type type = take_type();
        if (what.empty() || (type != Type::u32 && type != Type::pred) || (what == "popc") != (type == Type::u32))
            return unsupported();
        if (!done()) return false;
        BarrierKind kind = what == "popc"  ? BarrierKind::red_popc
                           : what == "and" ? BarrierKind::red_and
                                           : BarrierKind::red_or;
        return emit_barrier(static_cast<uint32_t>(kind), 1);
    }
    bool is_arrive = take("arrive");
    if (!is_arrive && !take("sync")) return unsupported();
    if (!done()) return false;
    return emit_barrier(static_cast<uint32_t>(is_arrive ? BarrierKind::arrive : BarrierKind::sync), 0);
}

bool Lowering::lower_fence() {
    take_any({"sc", "acq_rel", "acquire", "release"});
    take_any({"cta", "cluster", "gl", "gpu", "sys"});
    take_any({"proxy"});
    take_any({"async", "alias", "async.global"});
    take_any({"global", "shared::cta", "shared::cluster", "mbarrier_init"});
    if (!done() || !operands(0)) return false;
    emit(draft(control_handler(ControlOp::fence)));
    return true;
}

bool Lowering::lower_shfl() {
    bool sync = take("sync");
    std::string_view mode = take_any({"up", "down", "bfly", "idx"});
    Type type = take_type();
    if (mode.empty() || ptx::size_of(type) != 4) return unsupported();
    if (!done() || !operands(sync ? 5 : 4)) return false;
    ShuffleMode which = mode == "up"     ? ShuffleMode::up
                        : mode == "down" ? ShuffleMode::down
                        : mode == "bfly" ? ShuffleMode::bfly
                                         : ShuffleMode::idx;
    Draft shuffle = draft(shuffle_handler(which));
    shuffle.reads_imm = true;
    Ref members = kNoRef;
    if (!source(operand(1), Type::b32, shuffle.op.a) || !source(operand(2), Type::b32, shuffle.op.b)) return false;
    if (!source(operand(3), Type::b32, shuffle.op.c)) return false;
    if (sync && !source(operand(4), Type::b32, members)) return false;
    shuffle.op.imm = members;
    if (!destination(operand(0), Type::b32, shuffle.op.d)) return false;
    if (operand(0).has_second() && !predicate_destination(operand(0).elements[0], shuffle.op.e)) return false;
    emit(std::move(shuffle));
    return true;
}

bool Lowering::lower_vote() {
    bool sync = take("sync");
    std::string_view mode = take_any({"all", "any", "uni", "ballot"});
    Type type = take_type();
    bool ballot = mode == "ballot";
    if (mode.empty() || type != (ballot ? Type::b32 : Type::pred)) return unsupported();
    if (!done() || !operands(sync ? 3 : 2)) return false;
    VoteMode which = mode == "all"   ? VoteMode::all
                     : mode == "any" ? VoteMode::any
                     : mode == "uni" ? VoteMode::uni
                                     : VoteMode::ballot;
    Draft vote = draft(vote_handler(which));
    vote.reads_imm = true;
    Ref members = kNoRef;
    if (!predicate_source(operand(1), vote.op.a)) return false;
    if (sync && !source(operand(2), Type::b32, members)) return false;
    vote.op.imm = members;
    if (ballot ? !destination(operand(0), Type::b32, vote.op.d) : !predicate_destination(operand(0), vote.op.d))
        return false;
    emit(std::move(vote));
    return true;
}

bool Lowering::lower_match() {
    std::string_view mode = take_any({"any", "all"});
    bool sync = take("sync");
    Type type = take_type();
    if (mode.empty() || !sync || (type != Type::b32 && type != Type::b64)) return unsupported();
    if (!done() || !operands(3)) return false;
    bool all = mode == "all";
    Draft match = draft(match_handler(all, type == Type::b64));
    match.reads_imm = true;
    Ref members = kNoRef;
    if (!source(operand(1), type, match.op.a) || !source(operand(2), Type::b32, members)) return false;
    match.op.imm = members;
    if (!destination(operand(0), Type::b32, match.op.d)) return false;
    if (all && operand(0).has_second() && !predicate_destination(operand(0).elements[0], match.op.e)) return false;
    emit(std::move(match));
    return true;
}

bool Lowering::lower_redux() {
    static constexpr std::pair<std::string_view, ReduxOp> kOperations[] = {
        {"add", ReduxOp::add},     {"min", ReduxOp::min},   {"max", ReduxOp::max},
        {"and", ReduxOp::bit_and}, {"or", ReduxOp::bit_or}, {"xor", ReduxOp::bit_xor}};
    bool sync = take("sync"), found = false;
    ReduxOp op = ReduxOp::add;
    for (auto [name, which] : kOperations) {
        if (!take(name)) continue;
        op = which;
        found = true;
        break;
    }
    Type type = take_type();
    Handler handler = redux_handler(op, type);
    if (!sync || !found || handler == nullptr) return unsupported();
    if (!done() || !operands(3)) return false;
    Draft redux = draft(handler);
    redux.reads_imm = true;
    Ref members = kNoRef;
    if (!source(operand(1), type, redux.op.a) || !source(operand(2), Type::b32, members)) return false;
    redux.op.imm = members;
    if (!destination(operand(0), type, redux.op.d)) return false;
    emit(std::move(redux));
    return true;
}

bool Lowering::lower_activemask() {
    if (take_type() != Type::b32) return unsupported();
    if (!done() || !operands(1)) return false;
    Draft active = draft(active_mask_handler());
    if (!destination(operand(0), Type::b32, active.op.d)) return false;
    emit(std::move(active));
    return true;
}

bool Lowering::lower_elect() {
    if (!take("sync")) return unsupported();
    if (!done() || !operands(2)) return false;
    if (!operand(0).has_second()) return fail("a predicate is missing");
    Draft elect = draft(elect_handler());
    elect.reads_imm = true;
    Ref members = kNoRef;
    if (!source(operand(1), Type::b32, members)) return false;
    elect.op.imm = members;
    if (operand(0).kind != Kind::sink && !destination(operand(0), Type::b32, elect.op.d)) return false;
    if (!predicate_destination(operand(0).elements[0], elect.op.e)) return false;
    emit(std::move(elect));
    return true;
}

bool Lowering::lower_nanosleep() {
    if (take_type() != Type::u32) return unsupported();
    if (!done() || !operands(1)) return false;
    Draft sleep = draft(control_handler(ControlOp::nanosleep));
    if (!source(operand(0), Type::u32, sleep.op.a)) return false;
    emit(std::move(sleep));
    return true;
}

}  // namespace weft::engine
