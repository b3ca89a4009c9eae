// Arithmetic, logic and comparison instructions.
#include "swgpu/engine/lowering.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

namespace {

// The type that operands of an integer or bit instruction have.
Type same_size(Type type, Type word, Type wide) { return ptx::size_of(type) == 8 ? wide : word; }

bool is_float_type(Type t) { return ptx::is_float(t) && t != Type::tf32; }

}  // namespace

bool Lowering::lower_addsub() {
    ArithmeticQuery q;
    q.operation = instruction_->opcode == "add" ? Operation::add : Operation::sub;
    if (take("cc")) return lower_carry(instruction_->opcode == "add" ? "add.cc" : "sub.cc");
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.sat = take("sat");
    q.type = take_type();
    if (!is_float_type(q.type) && (q.ftz || q.rounding != Rounding::none)) return unsupported();
    if (q.type == Type::none || ptx::is_bits(q.type)) return unsupported();
    return emit_arithmetic(q, {q.type, q.type}, q.type);
}

// add.cc, addc, addc.cc, sub.cc, subc, subc.cc
bool Lowering::lower_carry(std::string_view opcode) {
    bool writes = opcode == "add.cc" || opcode == "sub.cc" || take("cc");
    bool reads = opcode == "addc" || opcode == "subc";
    bool is_add = opcode == "add.cc" || opcode == "addc";
    ArithmeticQuery q;
    q.operation = is_add ? (reads ? Operation::addc : Operation::add_cc) : reads ? Operation::subc : Operation::sub_cc;
    q.type = take_type();
    if (!ptx::is_integer(q.type) || ptx::size_of(q.type) < 4) return unsupported();
    if (!done() || !operands(3)) return false;
    Handler handler = arithmetic(q);
    if (handler == nullptr) return false;
    Draft draft = this->draft(handler);
    if (!source(operand(1), q.type, draft.op.a) || !source(operand(2), q.type, draft.op.b)) return false;
    if (!destination(operand(0), q.type, draft.op.d)) return false;
    if (carry_ == kNoRef) carry_ = temporary(RowClass::predicate);
    draft.e_is_source = true;
    if (reads) draft.op.e = carry_;
    draft.writes_imm_predicate = true;
    draft.op.imm = writes ? carry_ : kNoRef;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_mul() {
    ArithmeticQuery q;
    q.operation = Operation::mul;
    std::string_view part = take_any({"lo", "hi", "wide"});
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.sat = take("sat");
    q.type = take_type();
    if (is_float_type(q.type)) return part.empty() ? emit_arithmetic(q, {q.type, q.type}, q.type) : unsupported();
    if (part.empty() || q.ftz || q.sat || q.rounding != Rounding::none || !ptx::is_integer(q.type))
        return unsupported();
    q.operation = part == "lo" ? Operation::mul_lo : part == "hi" ? Operation::mul_hi : Operation::mul_wide;
    Type to = part != "wide" ? q.type : ptx::size_of(q.type) == 2 ? Type::u32 : Type::u64;
    return emit_arithmetic(q, {q.type, q.type}, to);
}

bool Lowering::lower_mad() {
    ArithmeticQuery q;
    std::string_view part = take_any({"lo", "hi", "wide"});
    if (!part.empty() && take("cc")) return lower_mad_carry(part == "lo" ? "mad.lo.cc" : "mad.hi.cc");
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.sat = take("sat");
    q.type = take_type();
    if (q.type == Type::f32 || q.type == Type::f64) {
        q.operation = Operation::fma;
        return part.empty() ? emit_arithmetic(q, {q.type, q.type, q.type}, q.type) : unsupported();
    }
    if (part.empty() || q.ftz || q.rounding != Rounding::none || !ptx::is_integer(q.type)) return unsupported();
    if (q.sat && part != "hi") return unsupported();
    q.operation = part == "lo" ? Operation::mad_lo : part == "hi" ? Operation::mad_hi : Operation::mad_wide;
    Type to = part != "wide" ? q.type : ptx::size_of(q.type) == 2 ? Type::u32 : Type::u64;
    return emit_arithmetic(q, {q.type, q.type, to}, to);
}

// mad.lo.cc, mad.hi.cc, madc.lo, madc.hi with or without .cc
bool Lowering::lower_mad_carry(std::string_view opcode) {
    bool writes = true, reads = false;
    std::string_view part = opcode == "mad.lo.cc" ? "lo" : "hi";
    if (opcode == "madc") {
        part = take_any({"lo", "hi"});
        writes = take("cc");
        reads = true;
    }
    if (part.empty()) return unsupported();
    bool low = part == "lo";
    ArithmeticQuery q;
    q.operation = reads ? (low ? Operation::madc_lo : Operation::madc_hi)
                  : low ? Operation::mad_lo_cc
                        : Operation::mad_hi_cc;
    q.type = take_type();
    if (!ptx::is_integer(q.type) || ptx::size_of(q.type) < 4) return unsupported();
    if (!done() || !operands(4)) return false;
    Handler handler = arithmetic(q);
    if (handler == nullptr) return false;
    Draft draft = this->draft(handler);
    if (!source(operand(1), q.type, draft.op.a) || !source(operand(2), q.type, draft.op.b)) return false;
    if (!source(operand(3), q.type, draft.op.c) || !destination(operand(0), q.type, draft.op.d)) return false;
    if (carry_ == kNoRef) carry_ = temporary(RowClass::predicate);
    draft.e_is_source = true;
    if (reads) draft.op.e = carry_;
    draft.writes_imm_predicate = true;
    draft.op.imm = writes ? carry_ : kNoRef;
    draft.op.aux = ptx::is_signed(q.type);
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_mul24() {
    bool is_mad = instruction_->opcode == "mad24";
    std::string_view part = take_any({"lo", "hi"});
    ArithmeticQuery q;
    q.sat = take("sat");
    q.type = take_type();
    if (part.empty() || (q.sat && (!is_mad || part == "lo"))) return unsupported();
    if (!is_mad) {
        q.operation = part == "lo" ? Operation::mul24_lo : Operation::mul24_hi;
        return emit_arithmetic(q, {q.type, q.type}, q.type);
    }
    q.operation = part == "lo" ? Operation::mad24_lo : Operation::mad24_hi;
    return emit_arithmetic(q, {q.type, q.type, q.type}, q.type);
}

bool Lowering::lower_fma() {
    ArithmeticQuery q;
    q.operation = Operation::fma;
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.sat = take("sat");
    q.relu = take("relu");
    q.type = take_type();
    if (!is_float_type(q.type) || q.rounding == Rounding::none || (q.relu && !ptx::is_half(q.type)))
        return unsupported();
    return emit_arithmetic(q, {q.type, q.type, q.type}, q.type);
}

bool Lowering::lower_div() {
    ArithmeticQuery q;
    q.operation = Operation::div;
    q.approx = !take_any({"approx", "full"}).empty();
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.type = take_type();
    bool is_float = q.type == Type::f32 || q.type == Type::f64;
    if (!is_float && (!ptx::is_integer(q.type) || q.approx || q.ftz || q.rounding != Rounding::none))
        return unsupported();
    return emit_arithmetic(q, {q.type, q.type}, q.type);
}

bool Lowering::lower_rem() {
    ArithmeticQuery q;
    q.operation = Operation::rem;
    q.type = take_type();
    if (!ptx::is_integer(q.type)) return unsupported();
    return emit_arithmetic(q, {q.type, q.type}, q.type);
}

bool Lowering::lower_abs_neg() {
    ArithmeticQuery q;
    q.operation = instruction_->opcode == "abs" ? Operation::abs : Operation::neg;
    q.ftz = take("ftz");
    q.type = take_type();
    if (!is_float_type(q.type) && (q.ftz || !ptx::is_signed(q.type))) return unsupported();
    return emit_arithmetic(q, {q.type}, q.type);
}

bool Lowering::lower_minmax() {
    ArithmeticQuery q;
    q.operation = instruction_->opcode == "min" ? Operation::min : Operation::max;
    q.ftz = take("ftz");
    q.nan = take("NaN");
    q.xorsign_abs = take("xorsign") && take("abs");
    q.relu = take("relu");
    q.type = take_type();
    bool is_float = is_float_type(q.type);
    if (!is_float && (q.ftz || q.nan || q.xorsign_abs)) return unsupported();
    if (is_float && q.relu) return unsupported();
    return emit_arithmetic(q, {q.type, q.type}, q.type);
}

bool Lowering::lower_transcendental() {
    static const std::unordered_map<std::string_view, Operation> kOperations = {
        {"rcp", Operation::rcp}, {"sqrt", Operation::sqrt}, {"rsqrt", Operation::rsqrt}, {"sin", Operation::sin},
        {"cos", Operation::cos}, {"ex2", Operation::ex2},   {"lg2", Operation::lg2},     {"tanh", Operation::tanh}};
    ArithmeticQuery q;
    q.operation = kOperations.at(instruction_->opcode);
    q.approx = take("approx");
    q.rounding = take_rounding();
    q.ftz = take("ftz");
    q.type = take_type();
    bool rounds = q.operation == Operation::rcp || q.operation == Operation::sqrt;
    if (!is_float_type(q.type) || (q.approx == (q.rounding != Rounding::none)) || (!rounds && !q.approx))
        return unsupported();
    return emit_arithmetic(q, {q.type}, q.type);
}

bool Lowering::lower_copysign() {
    ArithmeticQuery q;
    q.operation = Operation::copysign;
    q.type = take_type();
    if (q.type != Type::f32 && q.type != Type::f64) return unsupported();
    return emit_arithmetic(q, {q.type, q.type}, q.type);
}

// A number is told from its bits: magnitude m against the bits of infinity and of the least normal number.
bool Lowering::lower_testp() {
    std::string_view what = take_any({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
    Type type = take_type();
    if (what.empty() || (type != Type::f32 && type != Type::f64)) return unsupported();
    if (!done() || !operands(2)) return false;
    bool wide = type == Type::f64;
    Type bits = wide ? Type::u64 : Type::u32;
    RowClass row = row_class(bits);
    uint64_t infinity = wide ? 0x7ff0000000000000u : 0x7f800000u, least = wide ? 0x0010000000000000u : 0x00800000u;
    Ref value = kNoRef, predicate = kNoRef;
    if (!source(operand(1), type, value) || !predicate_destination(operand(0), predicate)) return false;
    ArithmeticQuery q;
    q.operation = Operation::bit_and;
    q.type = bits;
    Draft magnitude = draft(arithmetic(q));
    magnitude.op.a = value;
    magnitude.op.b = constant(wide ? 0x7fffffffffffffffu : 0x7fffffffu, row);
    Ref m = magnitude.op.d = temporary(row);
    emit(std::move(magnitude));
    if (what == "normal" || what == "subnormal") {
        // least <= m < infinity, or 0 < m < least: one unsigned comparison after subtracting the lower end.
        uint64_t low = what == "normal" ? least : 1, high = what == "normal" ? infinity : least;
        q.operation = Operation::sub;
        Draft shifted = draft(arithmetic(q));
        shifted.op.a = m;
        shifted.op.b = constant(low, row);
        Ref from_low = shifted.op.d = temporary(row);
        emit(std::move(shifted));
        Draft test = draft(handler_set().compare({Compare::lt, bits, false}));
        test.op.a = from_low;
        test.op.b = constant(high - low, row);
        test.op.d = predicate;
        emit(std::move(test));
        return true;
    }
    Compare compare = what == "finite"     ? Compare::lt
                      : what == "infinite" ? Compare::eq
                      : what == "number"   ? Compare::le
                                           : Compare::gt;
    Draft test = draft(handler_set().compare({compare, bits, false}));
    test.op.a = m;
    test.op.b = constant(infinity, row);
    test.op.d = predicate;
    emit(std::move(test));
    return true;
}

bool Lowering::lower_sad() {
    ArithmeticQuery q;
    q.operation = Operation::sad;
    q.type = take_type();
    if (!ptx::is_integer(q.type)) return unsupported();
    return emit_arithmetic(q, {q.type, q.type, q.type}, q.type);
}

bool Lowering::lower_bit_count() {
    ArithmeticQuery q;
    std::string_view name = instruction_->opcode;
    q.operation = name == "popc" ? Operation::popc : name == "clz" ? Operation::clz : Operation::brev;
    q.type = take_type();
    if (!ptx::is_bits(q.type) || (ptx::size_of(q.type) != 4 && ptx::size_of(q.type) != 8)) return unsupported();
    return emit_arithmetic(q, {q.type}, name == "brev" ? q.type : Type::u32);
}

bool Lowering::lower_bfind() {
    ArithmeticQuery q;
    q.operation = take("shiftamt") ? Operation::bfind_shift : Operation::bfind;
    q.type = take_type();
    if (!ptx::is_integer(q.type) || ptx::size_of(q.type) < 4) return unsupported();
    return emit_arithmetic(q, {q.type}, Type::u32);
}

bool Lowering::lower_bfe() {
    ArithmeticQuery q;
    q.operation = Operation::bfe;
    q.type = take_type();
    if (!ptx::is_integer(q.type) || ptx::size_of(q.type) < 4) return unsupported();
    return emit_arithmetic(q, {q.type, Type::u32, Type::u32}, q.type);
}

bool Lowering::lower_bfi() {
    ArithmeticQuery q;
    q.operation = Operation::bfi;
    q.type = take_type();
    if (!ptx::is_bits(q.type) || (ptx::size_of(q.type) != 4 && ptx::size_of(q.type) != 8)) return unsupported();
    return emit_arithmetic(q, {q.type, q.type, Type::u32, Type::u32}, q.type);
}

bool Lowering::lower_fns() {
    ArithmeticQuery q;
    q.operation = Operation::fns;
    q.type = take_type();
    if (q.type != Type::b32) return unsupported();
    return emit_arithmetic(q, {Type::b32, Type::u32, Type::s32}, Type::b32);
}

bool Lowering::lower_dot() {
    ArithmeticQuery q;
    q.operation = Operation::dp4a;
    if (instruction_->opcode == "dp2a") {
        std::string_view part = take_any({"lo", "hi"});
        if (part.empty()) return unsupported();
        q.operation = part == "lo" ? Operation::dp2a_lo : Operation::dp2a_hi;
    }
    q.type = take_type();
    q.type_b = take_type();
    auto word = [](Type t) { return t == Type::u32 || t == Type::s32; };
    if (!word(q.type) || !word(q.type_b)) return unsupported();
    return emit_arithmetic(q, {q.type, q.type_b, Type::b32}, Type::b32);
}

bool Lowering::lower_szext() {
    ArithmeticQuery q;
    std::string_view mode = take_any({"clamp", "wrap"});
    q.operation = mode == "clamp" ? Operation::szext_clamp : Operation::szext_wrap;
    q.type = take_type();
    if (mode.empty() || (q.type != Type::u32 && q.type != Type::s32)) return unsupported();
    return emit_arithmetic(q, {q.type, Type::u32}, q.type);
}

bool Lowering::lower_bmsk() {
    ArithmeticQuery q;
    std::string_view mode = take_any({"clamp", "wrap"});
    q.operation = mode == "clamp" ? Operation::bmsk_clamp : Operation::bmsk_wrap;
    q.type = take_type();
    if (mode.empty() || q.type != Type::b32) return unsupported();
    return emit_arithmetic(q, {Type::u32, Type::u32}, Type::b32);
}

bool Lowering::lower_prmt() {
    static const std::unordered_map<std::string_view, Operation> kModes = {
        {"f4e", Operation::prmt_f4e}, {"b4e", Operation::prmt_b4e}, {"rc8", Operation::prmt_rc8},
        {"ecl", Operation::prmt_ecl}, {"ecr", Operation::prmt_ecr}, {"rc16", Operation::prmt_rc16}};
    ArithmeticQuery q;
    q.type = take_type();
    std::string_view mode = take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    q.operation = mode.empty() ? Operation::prmt : kModes.at(mode);
    if (q.type != Type::b32) return unsupported();
    return emit_arithmetic(q, {Type::b32, Type::b32, Type::b32}, Type::b32);
}

bool Lowering::lower_logic() {
    static const std::unordered_map<std::string_view, Operation> kOperations = {{"and", Operation::bit_and},
                                                                                {"or", Operation::bit_or},
                                                                                {"xor", Operation::bit_xor},
                                                                                {"not", Operation::bit_not},
                                                                                {"cnot", Operation::cnot}};
    ArithmeticQuery q;
    q.operation = kOperations.at(instruction_->opcode);
    q.type = take_type();
    bool unary = q.operation == Operation::bit_not || q.operation == Operation::cnot;
    if (q.type == Type::pred) {
        if (q.operation == Operation::cnot || !done() || !operands(unary ? 2 : 3))
            return q.operation == Operation::cnot ? unsupported() : false;
        Operation kind = q.operation == Operation::bit_and   ? Operation::pred_and
                         : q.operation == Operation::bit_or  ? Operation::pred_or
                         : q.operation == Operation::bit_xor ? Operation::pred_xor
                                                             : Operation::pred_not;
        q.operation = kind;
        Handler handler = arithmetic(q);
        if (handler == nullptr) return false;
        Draft draft = this->draft(handler);
        if (!predicate_source(operand(1), draft.op.a)) return false;
        if (!unary && !predicate_source(operand(2), draft.op.b)) return false;
        if (!predicate_destination(operand(0), draft.op.d)) return false;
        emit(std::move(draft));
        return true;
    }
    if (!ptx::is_bits(q.type) || ptx::size_of(q.type) < 2 || q.type == Type::b128) return unsupported();
    return unary ? emit_arithmetic(q, {q.type}, q.type) : emit_arithmetic(q, {q.type, q.type}, q.type);
}

bool Lowering::lower_lop3() {
    ArithmeticQuery q;
    q.operation = Operation::lop3;
    q.type = take_type();
    uint64_t table = 0;
    if (q.type != Type::b32) return unsupported();
    if (!done() || !operands(5)) return false;
    Handler handler = arithmetic(q);
    if (handler == nullptr) return false;
    Draft draft = this->draft(handler);
    if (!source(operand(1), q.type, draft.op.a) || !source(operand(2), q.type, draft.op.b)) return false;
    if (!source(operand(3), q.type, draft.op.c) || !integer_immediate(operand(4), table)) return false;
    if (!destination(operand(0), q.type, draft.op.d)) return false;
    draft.op.imm = table & 0xff;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_shift() {
    ArithmeticQuery q;
    q.operation = instruction_->opcode == "shl" ? Operation::shl : Operation::shr;
    q.type = take_type();
    bool good = ptx::is_bits(q.type) || ptx::is_integer(q.type);
    if (!good || ptx::size_of(q.type) < 2 || q.type == Type::b128) return unsupported();
    return emit_arithmetic(q, {q.type, Type::u32}, q.type);
}

bool Lowering::lower_shf() {
    ArithmeticQuery q;
    std::string_view side = take_any({"l", "r"}), mode = take_any({"clamp", "wrap"});
    q.type = take_type();
    if (side.empty() || mode.empty() || q.type != Type::b32) return unsupported();
    bool clamp = mode == "clamp";
    q.operation = side == "l" ? (clamp ? Operation::shf_l_clamp : Operation::shf_l_wrap)
                  : clamp     ? Operation::shf_r_clamp
                              : Operation::shf_r_wrap;
    return emit_arithmetic(q, {Type::b32, Type::b32, Type::u32}, Type::b32);
}

bool Lowering::lower_selp() {
    ArithmeticQuery q;
    q.operation = Operation::selp;
    Type type = take_type();
    if (type == Type::none || type == Type::pred || type == Type::b128 || ptx::size_of(type) < 2) return unsupported();
    q.type = same_size(type, Type::b32, Type::b64);
    if (!done() || !operands(4)) return false;
    Draft draft = this->draft(arithmetic(q));
    if (!source(operand(1), type, draft.op.a) || !source(operand(2), type, draft.op.b)) return false;
    if (!predicate_source(operand(3), draft.op.c) || !destination(operand(0), type, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_slct() {
    ArithmeticQuery q;
    q.operation = Operation::slct;
    q.ftz = take("ftz");
    Type type = take_type();
    q.type_b = take_type();
    if (type == Type::none || type == Type::b128 || (q.type_b != Type::s32 && q.type_b != Type::f32))
        return unsupported();
    q.type = same_size(type, Type::b32, Type::b64);
    return emit_arithmetic(q, {type, type, q.type_b}, type);
}

bool Lowering::take_compare(CompareQuery& query, std::string_view& combine) {
    static constexpr std::pair<std::string_view, Compare> kNames[] = {
        {"eq", Compare::eq},   {"ne", Compare::ne},   {"lt", Compare::lt},   {"le", Compare::le},
        {"gt", Compare::gt},   {"ge", Compare::ge},   {"lo", Compare::lt},   {"ls", Compare::le},
        {"hi", Compare::gt},   {"hs", Compare::ge},   {"equ", Compare::equ}, {"neu", Compare::neu},
        {"ltu", Compare::ltu}, {"leu", Compare::leu}, {"gtu", Compare::gtu}, {"geu", Compare::geu},
        {"num", Compare::num}, {"nan", Compare::nan}};
    bool found = false;
    for (auto [name, compare] : kNames) {
        if (!take(name)) continue;
        query.compare = compare;
        found = true;
        break;
    }
    combine = take_any({"and", "or", "xor"});
    query.ftz = take("ftz");
    return found || unsupported();
}

bool Lowering::lower_setp() {
    CompareQuery q;
    std::string_view combine;
    if (!take_compare(q, combine)) return false;
    q.type = take_type();
    if (!done() || !operands(combine.empty() ? 3 : 4)) return false;
    Handler handler = handler_set().compare(q);
    if (handler == nullptr) return unsupported();
    Draft draft = this->draft(handler);
    if (!source(operand(1), q.type, draft.op.a) || !source(operand(2), q.type, draft.op.b)) return false;
    if (!combine.empty()) {
        draft.op.aux = combine == "and" ? 1 : combine == "or" ? 2 : 3;
        if (!predicate_source(operand(3), draft.op.c)) return false;
    }
    if (!predicate_destination(operand(0), draft.op.d)) return false;
    if (operand(0).has_second() && !predicate_destination(operand(0).elements[0], draft.op.e)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_set() {
    CompareQuery q;
    std::string_view combine;
    if (!take_compare(q, combine)) return false;
    Type to = take_type();
    q.type = take_type();
    if (!done() || !operands(combine.empty() ? 3 : 4)) return false;
    Handler handler = handler_set().compare(q);
    CompareEnd end = CompareEnd::plain;
    switch (to) {
        case Type::u32:
        case Type::s32: end = CompareEnd::mask_u32; break;
        case Type::f32: end = CompareEnd::mask_f32; break;
        case Type::u16:
        case Type::s16: end = CompareEnd::mask_u16; break;
        case Type::f16:
        case Type::f16x2: end = CompareEnd::mask_f16; break;
        case Type::bf16:
        case Type::bf16x2: end = CompareEnd::mask_bf16; break;
        default: return unsupported();
    }
    if (handler == nullptr) return unsupported();
    Draft draft = this->draft(handler);
    draft.op.aux = static_cast<uint32_t>(end);
    if (!source(operand(1), q.type, draft.op.a) || !source(operand(2), q.type, draft.op.b)) return false;
    if (!combine.empty()) {
        draft.op.aux |= combine == "and" ? 1 : combine == "or" ? 2 : 3;
        if (!predicate_source(operand(3), draft.op.c)) return false;
    }
    if (!destination(operand(0), to, draft.op.d)) return false;
    emit(std::move(draft));
    return true;
}

}  // namespace weft::engine
