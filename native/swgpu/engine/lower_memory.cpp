// Loads, stores, atomics, prefetches, asynchronous copies.
#include "swgpu/engine/atomic.h"
#include "swgpu/engine/async_copy.h"
#include "swgpu/engine/control.h"
#include "swgpu/engine/lowering.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

// Memory order, scope and state space. Everything here is at least as strong as asked: workers run on a coherent host.
bool Lowering::take_space(AddressSpace& space, bool& ordered) {
    ordered = !take_any({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}).empty();
    if (take("mmio")) ordered = true;
    take("weak");
    take_any({"cta", "cluster", "gpu", "sys"});
    static constexpr std::pair<std::string_view, AddressSpace> kSpaces[] = {
        {"global", AddressSpace::global},      {"shared", AddressSpace::shared},
        {"shared::cta", AddressSpace::shared}, {"shared::cluster", AddressSpace::shared},
        {"local", AddressSpace::local},        {"const", AddressSpace::constant},
        {"param", AddressSpace::param},        {"param::entry", AddressSpace::param},
        {"param::func", AddressSpace::param}};
    space = AddressSpace::generic;
    for (auto [name, which] : kSpaces) {
        if (!take(name)) continue;
        space = which;
        break;
    }
    return true;
}

// Hints about caches change nothing here; a policy operand follows when L2::cache_hint is given.
bool Lowering::take_cache_hints(size_t& extra_operands) {
    extra_operands = take("L2::cache_hint") ? 1 : 0;
    take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
    take("nc");
    take_any({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
    take_any({"L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::evict_unchanged"});
    take_any({"L2::64B", "L2::128B", "L2::256B"});
    take("unified");
    return true;
}

bool Lowering::lower_ld() {
    AddressSpace space = AddressSpace::generic;
    bool ordered = false;
    size_t extra = 0;
    take_space(space, ordered);
    take_cache_hints(extra);
    std::string_view vector = take_any({"v2", "v4", "v8"});
    uint32_t count = vector.empty() ? 1 : static_cast<uint32_t>(vector[1] - '0');
    Type type = take_type();
    if (type == Type::none || type == Type::pred) return unsupported();
    if (!done() || !operands(2 + extra)) return false;
    Draft draft = this->draft(nullptr);
    bool wide = ptx::size_of(type) == 8;
    if (count == 1) {
        const Operand& to =
            operand(0).kind == Kind::vector && operand(0).elements.size() == 1 ? operand(0).elements[0] : operand(0);
        if (!destination_any(to, draft.op.d, wide)) return false;
    } else {
        if (operand(0).kind != Kind::vector || operand(0).elements.size() != count)
            return fail("the vector has the wrong length");
        draft.has_list = true;
        draft.list_definitions = static_cast<uint8_t>(count);
        bool first = true, first_wide = wide;
        for (const Operand& element : operand(0).elements) {
            Ref ref = kNoRef;
            if (element.kind != Kind::sink && !destination_any(element, ref, wide)) return false;
            if (element.kind != Kind::sink && !first && wide != first_wide) return fail("the elements differ in size");
            if (element.kind != Kind::sink) {
                first = false;
                first_wide = wide;
            }
            draft.list.push_back(ref);
        }
        wide = first_wide;
    }
    if (type == Type::b128) {
        if (count != 1 || out_.registers[draft.op.d] != RowClass::quad) return unsupported();
        draft.op.run = quad_load_handler();
    } else {
        draft.op.run = handler_set().memory({false, type, wide});
    }
    if (draft.op.run == nullptr) return fail("the register is too small");
    if (ptx::size_of(type) * count > 32) return unsupported();
    draft.op.aux = count << memory_flags::kVectorShift | (ordered ? memory_flags::kOrdered : 0);
    if (!address(operand(1), space, draft)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_st() {
    AddressSpace space = AddressSpace::generic;
    bool ordered = false;
    size_t extra = 0;
    take_space(space, ordered);
    take_cache_hints(extra);
    std::string_view vector = take_any({"v2", "v4", "v8"});
    uint32_t count = vector.empty() ? 1 : static_cast<uint32_t>(vector[1] - '0');
    Type type = take_type();
    if (type == Type::none || type == Type::pred || space == AddressSpace::constant) return unsupported();
    if (!done() || !operands(2 + extra)) return false;
    Draft draft = this->draft(nullptr);
    bool wide = ptx::size_of(type) == 8;
    if (count == 1) {
        const Operand& from =
            operand(1).kind == Kind::vector && operand(1).elements.size() == 1 ? operand(1).elements[0] : operand(1);
        if (!source_any(from, type, draft.op.b, wide)) return false;
    } else {
        if (operand(1).kind != Kind::vector || operand(1).elements.size() != count)
            return fail("the vector has the wrong length");
        draft.has_list = true;
        bool all_wide = true, any_wide = false;
        for (const Operand& element : operand(1).elements) {
            Ref ref = kNoRef;
            if (!source_any(element, type, ref, wide)) return false;
            all_wide &= wide;
            any_wide |= wide;
            draft.list.push_back(ref);
        }
        if (all_wide != any_wide) return fail("the elements differ in size");
        wide = all_wide;
    }
    if (type == Type::b128) {
        if (count != 1 || draft.op.b >= out_.registers.size() || out_.registers[draft.op.b] != RowClass::quad)
            return unsupported();
        draft.op.run = quad_store_handler();
    } else {
        draft.op.run = handler_set().memory({true, type, wide});
    }
    if (draft.op.run == nullptr) return fail("the register is too small");
    if (ptx::size_of(type) * count > 32) return unsupported();
    draft.op.aux = count << memory_flags::kVectorShift | (ordered ? memory_flags::kOrdered : 0);
    if (!address(operand(0), space, draft)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_atom() {
    static constexpr std::pair<std::string_view, AtomicOp> kOperations[] = {
        {"add", AtomicOp::add},   {"min", AtomicOp::min},    {"max", AtomicOp::max},   {"inc", AtomicOp::inc},
        {"dec", AtomicOp::dec},   {"cas", AtomicOp::cas},    {"exch", AtomicOp::exch}, {"and", AtomicOp::bit_and},
        {"or", AtomicOp::bit_or}, {"xor", AtomicOp::bit_xor}};
    bool is_red = instruction_->opcode == "red", found = false, ordered = false;
    AtomicOp op = AtomicOp::add;
    for (auto [name, which] : kOperations) {
        if (!take(name)) continue;
        op = which;
        found = true;
        break;
    }
    AddressSpace space = AddressSpace::generic;
    size_t extra = 0;
    take_space(space, ordered);
    extra = take("L2::cache_hint") ? 1 : 0;
    bool noftz = take("noftz");
    Type type = take_type();
    if (!found || type == Type::none) return unsupported();
    if (noftz && !ptx::is_half(type)) return unsupported();
    if (is_red && (op == AtomicOp::cas || op == AtomicOp::exch)) return unsupported();
    if (space != AddressSpace::generic && space != AddressSpace::global && space != AddressSpace::shared)
        return unsupported();
    size_t first = is_red ? 0 : 1, sources = op == AtomicOp::cas ? 2 : 1;
    if (!done() || !operands(first + 1 + sources, first + 1 + sources + extra)) return false;
    Handler handler = atomic_handler(op, type);
    if (handler == nullptr) return unsupported();
    Draft draft = this->draft(handler);
    if (!source(operand(first + 1), type, draft.op.b)) return false;
    if (sources == 2 && !source(operand(first + 2), type, draft.op.c)) return false;
    if (!is_red && operand(0).kind != Kind::sink && !destination(operand(0), type, draft.op.d)) return false;
    if (!address(operand(first), space, draft)) return false;
    emit(std::move(draft));
    return true;
}

// prefetch, prefetchu, discard, applypriority, pmevent: accepted, and nothing to do.
bool Lowering::lower_hint() {
    take_any({"global", "local", "const", "param", "tensormap"});
    take_any({"L1", "L2", "L2::evict_last", "L2::evict_normal", "mask"});
    take_any({"L2::evict_last", "L2::evict_normal"});
    if (!done() || !operands(1, 2)) return false;
    emit(draft(control_handler(ControlOp::nop)));
    return true;
}

bool Lowering::lower_createpolicy() {
    take_any({"fractional", "range", "cvt"});
    take_any({"L2", "global"});
    take_any({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"});
    take_any({"L2::evict_last", "L2::evict_first", "L2::evict_unchanged"});
    Type type = take_type();
    if (type != Type::b64) return unsupported();
    if (!done() || !operands(1, 4)) return false;
    Draft draft = this->draft(move(Type::b64));
    draft.op.a = constant(0, RowClass::wide);
    if (!destination(operand(0), type, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

// Copies happen at once, so groups are always complete.
bool Lowering::lower_cp_async() {
    if (!take("async")) return unsupported();
    if (take("commit_group") || take("wait_all")) {
        if (!done() || !operands(0)) return false;
        emit(draft(control_handler(ControlOp::nop)));
        return true;
    }
    if (take("wait_group")) {
        if (!done() || !operands(1)) return false;
        emit(draft(control_handler(ControlOp::nop)));
        return true;
    }
    std::string_view cache = take_any({"ca", "cg"});
    std::string_view to = take_any({"shared", "shared::cta", "shared::cluster"});
    bool from = take("global");
    size_t hint = take("L2::cache_hint") ? 1 : 0;
    take_any({"L2::64B", "L2::128B", "L2::256B"});
    if (cache.empty() || to.empty() || !from) return unsupported();
    if (!done() || !operands(3, 4 + hint)) return false;
    uint64_t size = 0;
    if (!integer_immediate(operand(2), size)) return false;
    if (size != 4 && size != 8 && size != 16) return unsupported();
    // Two drafts: the first finds the destinations, the second the sources, and copies.
    Draft target = draft(copy_target_handler());
    Draft copy = draft(copy_handler());
    target.op.aux = copy.op.aux = 1u << memory_flags::kVectorShift;
    target.op.c = constant(size, RowClass::word);
    copy.op.c = target.op.c;
    copy.op.b = target.op.c;
    if (instruction_->operands.size() > 3 + hint) {
        if (operand(3).kind == Kind::reg &&
            function_.registers[static_cast<size_t>(operand(3).index)].type == Type::pred) {
            // The predicate asks to ignore the source.
            Ref ignore = kNoRef;
            ArithmeticQuery q;
            q.operation = Operation::selp;
            q.type = Type::b32;
            Draft select = draft(arithmetic(q));
            if (!predicate_source(operand(3), ignore)) return false;
            select.op.a = constant(0, RowClass::word);
            select.op.b = target.op.c;
            select.op.c = ignore;
            copy.op.b = select.op.d = temporary(RowClass::word);
            emit(std::move(select));
        } else if (!source(operand(3), Type::u32, copy.op.b)) {
            return false;
        }
    }
    target.op.d = temporary(RowClass::wide);
    copy.op.e = target.op.d;
    copy.e_is_source = true;
    if (!address(operand(0), AddressSpace::shared, target) || !address(operand(1), AddressSpace::global, copy))
        return false;
    if (instruction_->guard >= 0) {
        target.op.guard = static_cast<Ref>(instruction_->guard) | (instruction_->guard_negated ? kVirtualNegated : 0);
    }
    emit(std::move(target));
    emit(std::move(copy));
    return true;
}

bool Lowering::lower_mbarrier() { return unsupported(); }

}  // namespace weft::engine
