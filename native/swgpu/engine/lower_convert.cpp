// mov, cvt, cvta, isspacep.
#include "swgpu/engine/control.h"
#include "swgpu/engine/convert_generic.h"
#include "swgpu/engine/lowering.h"
#include "swgpu/engine/windows.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

bool Lowering::lower_mov() {
    Type type = take_type();
    if (type == Type::none || ptx::size_of(type) == 1) return unsupported();
    if (!done() || !operands(2)) return false;
    if (operand(0).kind == Kind::vector || operand(1).kind == Kind::vector) {
        used_ = 0;
        return lower_mov_vector();
    }
    if (type == Type::pred) {
        ArithmeticQuery q;
        q.operation = Operation::mov_pred;
        Draft draft = this->draft(arithmetic(q));
        if (!predicate_source(operand(1), draft.op.a) || !predicate_destination(operand(0), draft.op.d)) return false;
        emit(std::move(draft));
        return true;
    }
    if (type == Type::b128) {
        Draft draft = this->draft(move_quad_handler());
        if (!source(operand(1), type, draft.op.a) || !destination(operand(0), type, draft.op.d)) return false;
        emit(std::move(draft));
        return true;
    }
    Draft draft = this->draft(move(type));
    if (!source(operand(1), type, draft.op.a) || !destination(operand(0), type, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

// mov.b64 %rd, {%r0, %r1} and the other way round.
bool Lowering::lower_mov_vector() {
    Type type = take_type();
    bool packs = operand(1).kind == Kind::vector;
    const Operand& vector = packs ? operand(1) : operand(0);
    const Operand& scalar = packs ? operand(0) : operand(1);
    size_t count = vector.elements.size();
    uint32_t whole = ptx::size_of(type);
    if (scalar.kind == Kind::vector || count < 2 || count > 8 || whole % count != 0) return unsupported();
    uint32_t part = whole / static_cast<uint32_t>(count);
    Type part_type = part == 8   ? Type::b64
                     : part == 4 ? Type::b32
                     : part == 2 ? Type::b16
                     : part == 1 ? Type::b8
                                 : Type::none;
    ArithmeticQuery q;
    q.operation = packs ? Operation::pack : Operation::unpack;
    q.type = ptx::size_of(type) == 8 ? Type::b64 : ptx::size_of(type) == 4 ? Type::b32 : Type::b16;
    q.type_b = part_type;
    Handler handler = type == Type::b128 ? pack_quad_handler(packs, static_cast<uint32_t>(count)) : arithmetic(q);
    if (handler == nullptr) return unsupported();
    Draft draft = this->draft(handler);
    draft.has_list = true;
    draft.list_definitions = packs ? 0 : static_cast<uint8_t>(count);
    for (const Operand& element : vector.elements) {
        Ref ref = kNoRef;
        if (packs) {
            if (!source(element, part_type, ref)) return false;
        } else if (element.kind != Kind::sink && !destination(element, part_type, ref)) {
            return false;
        }
        draft.list.push_back(ref);
    }
    if (packs) {
        if (!destination(scalar, type, draft.op.d)) return false;
    } else if (!source(scalar, type, draft.op.a)) {
        return false;
    }
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_cvt() {
    if (take("pack")) return lower_cvt_pack();
    ConvertQuery q;
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.sat = take("sat");
    bool satfinite = take("satfinite");
    q.relu = take("relu");
    q.to = take_type();
    q.from = take_type();
    if (q.to == Type::none || q.from == Type::none || q.to == Type::pred || q.from == Type::pred) return unsupported();
    bool pair = q.to == Type::f16x2 || q.to == Type::bf16x2;
    bool special = pair || q.relu || satfinite;
    if (!done() || !operands(pair ? 3 : 2)) return false;
    if (special && q.to != Type::tf32) {
        if (q.sat) return unsupported();
        q.sat = satfinite;
        Handler handler = pair_conversion(q);
        if (handler == nullptr) return unsupported();
        Draft draft = this->draft(handler);
        draft.op.imm = encode_conversion(q);
        if (!source(operand(1), Type::f32, draft.op.a)) return false;
        if (pair && !source(operand(2), Type::f32, draft.op.b)) return false;
        if (!destination(operand(0), q.to, draft.op.d)) return false;
        emit(std::move(draft));
        return true;
    }
    if (q.to == Type::tf32 && (q.relu || satfinite)) return unsupported();
    Draft draft;
    bool wide = false;
    if (!source_any(operand(1), q.from, draft.op.a, q.wide_source)) return false;
    if (!destination_any(operand(0), draft.op.d, wide)) return false;
    q.wide_destination = operand(0).kind == Kind::sink ? false : wide;
    if ((ptx::size_of(q.from) == 8 && !q.wide_source) || (ptx::size_of(q.to) == 8 && !q.wide_destination))
        return fail("an operand has the wrong size");
    if (ptx::is_float(q.from) && q.wide_source != (q.from == Type::f64)) return fail("an operand has the wrong size");
    if (ptx::is_float(q.to) && q.wide_destination != (q.to == Type::f64)) return fail("an operand has the wrong size");
    // ftz means nothing between types without f32.
    if (q.from != Type::f32 && q.to != Type::f32 && q.ftz) return unsupported();
    draft.op.run = handler_set().convert(q);
    draft.op.line = instruction_->line;
    if (draft.op.run == nullptr) {
        draft.op.run = generic_conversion(q);
        draft.op.imm = encode_conversion(q);
    }
    if (draft.op.run == nullptr) return unsupported();
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_cvt_pack() {
    if (!take("sat")) return unsupported();
    Type to = take_type(), from = take_type(), extra = take_type();
    if (from != Type::s32) return unsupported();
    bool bytes = to == Type::u8 || to == Type::s8, halves = to == Type::u16 || to == Type::s16;
    if (!(bytes && extra == Type::b32) && !(halves && extra == Type::none)) return unsupported();
    if (!done() || !operands(bytes ? 4 : 3)) return false;
    Draft draft = this->draft(convert_pack_handler());
    draft.op.imm = static_cast<uint64_t>(to);
    if (!source(operand(1), Type::s32, draft.op.a) || !source(operand(2), Type::s32, draft.op.b)) return false;
    if (bytes && !source(operand(3), Type::b32, draft.op.c)) return false;
    if (!destination(operand(0), Type::b32, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

// Global, constant and parameter addresses are generic addresses; shared and local ones lie in windows.
bool Lowering::lower_cvta() {
    bool to_space = take("to");
    std::string_view space =
        take_any({"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
    Type type = take_type();
    if (space.empty() || (type != Type::u64 && type != Type::b64 && type != Type::s64)) return unsupported();
    if (!done() || !operands(2)) return false;
    bool windowed = space.substr(0, 6) == "shared" || space == "local";
    Ref from = kNoRef, to = kNoRef;
    bool is_wide = false;
    if (!source_any(operand(1), type, from, is_wide)) return false;
    if (!is_wide) return fail("an operand has the wrong size");
    if (!destination(operand(0), type, to)) return false;
    Draft draft =
        this->draft(windowed ? (to_space ? window_subtract_handler() : window_add_handler()) : move(Type::b64));
    draft.op.a = from;
    draft.op.d = to;
    draft.op.imm = space == "local" ? kLocalWindow : kSharedWindow;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_isspacep() {
    std::string_view space =
        take_any({"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
    if (space.empty()) return unsupported();
    if (!done() || !operands(2)) return false;
    Draft draft = this->draft(space_test_handler());
    AddressSpace which = space == "global"               ? AddressSpace::global
                         : space == "const"              ? AddressSpace::constant
                         : space == "local"              ? AddressSpace::local
                         : space.substr(0, 5) == "param" ? AddressSpace::param
                                                         : AddressSpace::shared;
    draft.op.imm = static_cast<uint64_t>(which);
    if (!source(operand(1), Type::u64, draft.op.a) || !predicate_destination(operand(0), draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

}  // namespace weft::engine
