// Operands of the PTX parser.
#include <array>
#include <charconv>

#include "swgpu/ptx/parser_state.h"

namespace weft::ptx {
namespace {

struct SpecialName {
    std::string_view name;
    SpecialRegister reg;
    bool has_components;
};

constexpr std::array<SpecialName, 39> kSpecial{{
    {"%tid", SpecialRegister::tid, true},
    {"%ntid", SpecialRegister::ntid, true},
    {"%ctaid", SpecialRegister::ctaid, true},
    {"%nctaid", SpecialRegister::nctaid, true},
    {"%laneid", SpecialRegister::laneid, false},
    {"%warpid", SpecialRegister::warpid, false},
    {"%nwarpid", SpecialRegister::nwarpid, false},
    {"%smid", SpecialRegister::smid, false},
    {"%nsmid", SpecialRegister::nsmid, false},
    {"%gridid", SpecialRegister::gridid, false},
    {"%lanemask_eq", SpecialRegister::lanemask_eq, false},
    {"%lanemask_le", SpecialRegister::lanemask_le, false},
    {"%lanemask_lt", SpecialRegister::lanemask_lt, false},
    {"%lanemask_ge", SpecialRegister::lanemask_ge, false},
    {"%lanemask_gt", SpecialRegister::lanemask_gt, false},
    {"%clock", SpecialRegister::clock, false},
    {"%clock_hi", SpecialRegister::clock_hi, false},
    {"%clock64", SpecialRegister::clock64, false},
    {"%globaltimer", SpecialRegister::globaltimer, false},
    {"%globaltimer_lo", SpecialRegister::globaltimer_lo, false},
    {"%globaltimer_hi", SpecialRegister::globaltimer_hi, false},
    {"%dynamic_smem_size", SpecialRegister::dynamic_smem_size, false},
    {"%total_smem_size", SpecialRegister::total_smem_size, false},
    {"%aggr_smem_size", SpecialRegister::aggr_smem_size, false},
    {"%clusterid", SpecialRegister::clusterid, true},
    {"%nclusterid", SpecialRegister::nclusterid, true},
    {"%cluster_ctaid", SpecialRegister::cluster_ctaid, true},
    {"%cluster_nctaid", SpecialRegister::cluster_nctaid, true},
    {"%cluster_ctarank", SpecialRegister::cluster_ctarank, false},
    {"%cluster_nctarank", SpecialRegister::cluster_nctarank, false},
    {"%is_explicit_cluster", SpecialRegister::is_explicit_cluster, false},
    {"%reserved_smem_offset_begin", SpecialRegister::reserved_smem_offset, false},
    {"%reserved_smem_offset_end", SpecialRegister::reserved_smem_offset, false},
    {"%reserved_smem_offset_cap", SpecialRegister::reserved_smem_offset, false},
    {"%reserved_smem_offset_0", SpecialRegister::reserved_smem_offset, false},
    {"%reserved_smem_offset_1", SpecialRegister::reserved_smem_offset, false},
    {"%pm0", SpecialRegister::pm, false},
    {"%envreg1", SpecialRegister::envreg1, false},
    {"%envreg2", SpecialRegister::envreg2, false},
}};

const SpecialName* special(std::string_view name) {
    for (const SpecialName& entry : kSpecial) {
        if (entry.name == name) return &entry;
    }
    static constexpr SpecialName kEnvreg{"", SpecialRegister::envreg, false}, kPm{"", SpecialRegister::pm, false};
    if (name.substr(0, 7) == "%envreg") return &kEnvreg;
    if (name.substr(0, 3) == "%pm" && name.size() > 3 && name[3] >= '0' && name[3] <= '7') return &kPm;
    return nullptr;
}

}  // namespace

std::optional<Binding> Parser::lookup(std::string_view name) const {
    for (int32_t at = scope_; at >= 0; at = scopes_[static_cast<size_t>(at)].parent) {
        const Scope& scope = scopes_[static_cast<size_t>(at)];
        if (auto found = scope.names.find(name); found != scope.names.end()) return found->second;
        if (scope.ranges.empty()) continue;
        // A prefix may itself end in digits (%r1<4> declares %r10..%r13), so every split is tried.
        for (size_t cut = name.size(); cut-- > 1 && name[cut] >= '0' && name[cut] <= '9';) {
            if (name[cut] == '0' && cut + 1 < name.size()) continue;
            uint32_t index = 0;
            auto result = std::from_chars(name.data() + cut, name.data() + name.size(), index);
            if (result.ec != std::errc{}) break;
            for (const RegisterRange& range : scope.ranges) {
                if (range.prefix == name.substr(0, cut) && index < range.count) {
                    return Binding{Binding::Kind::reg, range.base + static_cast<int32_t>(index), 1};
                }
            }
        }
    }
    return std::nullopt;
}

bool Parser::parse_component(uint8_t& component) {
    if (token_.kind != TokenKind::dotted || token_.text.size() != 1) return expected("a component");
    static constexpr std::string_view kNames = "xyzwrgba";
    size_t at = kNames.find(token_.text[0]);
    if (at == std::string_view::npos) return expected("a component");
    component = static_cast<uint8_t>(at % 4);
    advance();
    return true;
}

bool Parser::parse_immediate(Operand& operand) {
    bool minus = false, invert = false, logical_not = false;
    while (token_.is('-') || token_.is('+') || token_.is('~') || token_.is('!')) {
        if (token_.is('-')) minus = !minus;
        if (token_.is('~')) invert = true;
        if (token_.is('!')) logical_not = true;
        advance();
    }
    auto literal = token_.kind == TokenKind::number ? literal_from_text(token_.text) : std::nullopt;
    if (!literal) return expected("a number");
    advance();
    if (minus) literal = negated(*literal);
    operand.kind = Operand::Kind::immediate;
    operand.is_float = literal->is_float;
    operand.is_f32_bits = literal->is_f32_bits;
    operand.bits = logical_not ? literal->bits == 0 : invert ? ~literal->bits : literal->bits;
    return true;
}

bool Parser::parse_offset(Operand& operand) {
    while (token_.is('+') || token_.is('-')) {
        Operand immediate;
        if (!parse_immediate(immediate)) return false;
        if (immediate.is_float) return fail("an offset must be an integer");
        operand.offset = static_cast<int64_t>(static_cast<uint64_t>(operand.offset) + immediate.bits);
    }
    return true;
}

bool Parser::parse_name(Operand& operand) {
    std::string_view name = token_.text;
    operand.scope = scope_;
    operand.name = name;
    advance();
    if (name == "_") {
        operand.kind = Operand::Kind::sink;
        return true;
    }
    if (auto binding = lookup(name)) {
        operand.index = binding->index;
        if (binding->kind == Binding::Kind::variable) {
            operand.kind = Operand::Kind::variable;
            return true;
        }
        operand.kind = Operand::Kind::reg;
        if (binding->kind == Binding::Kind::reg) return true;
        if (token_.kind == TokenKind::dotted) {
            uint8_t component = 0;
            if (!parse_component(component)) return false;
            if (component >= binding->width) return fail("the vector has no such component");
            operand.index += component;
            return true;
        }
        operand.kind = Operand::Kind::vector;
        for (uint8_t i = 0; i < binding->width; ++i) {
            Operand element;
            element.kind = Operand::Kind::reg;
            element.index = binding->index + i;
            operand.elements.push_back(element);
        }
        return true;
    }
    if (name == "WARP_SZ") {
        operand.kind = Operand::Kind::immediate;
        operand.bits = 32;
        return true;
    }
    if (const SpecialName* entry = special(name)) {
        operand.kind = Operand::Kind::special;
        operand.index = static_cast<int32_t>(entry->reg);
        if (!entry->has_components) return true;
        if (token_.kind == TokenKind::dotted) return parse_component(operand.component);
        operand.component = 255;  // the whole vector, for mov.v4
        return true;
    }
    if (name[0] == '%') return fail("unknown register '" + std::string(name) + "'");
    operand.kind = Operand::Kind::name;
    return true;
}

// `name[3]`: the address of an element, as the ISA writes it for mov.
bool Parser::parse_element_index(Operand& operand) {
    uint64_t index = 0;
    if (!expect_integer(index, UINT32_MAX)) return false;
    if (operand.kind == Operand::Kind::variable) {
        const Variable& variable = function_.variables[static_cast<size_t>(operand.index)];
        operand.offset += static_cast<int64_t>(index * size_of(variable.type));
    } else if (index != 0) {
        return fail("unsupported: index of an array outside of functions");
    }
    return expect(']');
}

bool Parser::parse_simple(Operand& operand) {
    if (token_.kind == TokenKind::identifier) return parse_name(operand);
    if (token_.kind == TokenKind::number || token_.is('-') || token_.is('+') || token_.is('~')) {
        return parse_immediate(operand);
    }
    return expected("an operand");
}

bool Parser::parse_address(Operand& operand) {
    operand.kind = Operand::Kind::address;
    operand.elements.emplace_back();
    Operand& base = operand.elements.back();
    if (!parse_simple(base)) return false;
    if (base.kind == Operand::Kind::vector || base.kind == Operand::Kind::sink) return fail("unsupported address");
    if (!parse_offset(operand)) return false;
    if (accept(',')) {  // of textures and surfaces
        operand.elements.emplace_back();
        Operand& coordinates = operand.elements.back();
        const bool parsed =
            accept('{') ? parse_group(coordinates, Operand::Kind::vector, '}') : parse_simple(coordinates);
        if (!parsed) return false;
    }
    return expect(']');
}

bool Parser::parse_group(Operand& operand, Operand::Kind kind, char close) {
    operand.kind = kind;
    if (accept(close)) return true;
    do {
        if (operand.elements.size() >= 256) return fail("too many operands");
        Operand element;
        if (!parse_simple(element)) return false;
        operand.elements.push_back(std::move(element));
    } while (accept(','));
    return expect(close);
}

bool Parser::parse_operand(Operand& operand) {
    if (accept('[')) return parse_address(operand);
    if (accept('{')) return parse_group(operand, Operand::Kind::vector, '}');
    if (accept('(')) return parse_group(operand, Operand::Kind::list, ')');
    if (accept('!')) {
        if (token_.kind != TokenKind::identifier) return expected("a predicate");
        operand.negated = true;
        return parse_name(operand);
    }
    if (token_.is('-')) {  // -%r1 is no PTX, -5 is
        return parse_immediate(operand);
    }
    if (!parse_simple(operand)) return false;
    if (operand.kind == Operand::Kind::name || operand.kind == Operand::Kind::variable) {
        if (accept('[') && !parse_element_index(operand)) return false;
        return parse_offset(operand);
    }
    if (accept('|')) {
        Operand second;
        if (!parse_simple(second)) return false;
        operand.elements.push_back(std::move(second));
    }
    return true;
}

}  // namespace weft::ptx
