// Function bodies of the PTX parser: scopes, declarations, labels, instructions.
#include <algorithm>

#include "swgpu/ptx/parser_state.h"

namespace weft::ptx {
namespace {

constexpr uint64_t kMaxRegisters = 1 << 20;
constexpr uint64_t kMaxFrameBytes = 1 << 22;

}  // namespace

bool Parser::open_scope() {
    if (scopes_.size() > 100'000) return fail("too many scopes");
    scopes_.emplace_back();
    scopes_.back().parent = scope_;
    scope_ = static_cast<int32_t>(scopes_.size()) - 1;
    return true;
}

bool Parser::bind(std::string_view name, Binding binding) {
    if (name == "_") return true;
    bool is_new = scopes_[static_cast<size_t>(scope_)].names.emplace(name, binding).second;
    return is_new || fail("'" + std::string(name) + "' is declared twice");
}

int32_t Parser::add_registers(Type type, uint64_t count) {
    int32_t base = static_cast<int32_t>(function_.registers.size());
    function_.registers.resize(function_.registers.size() + count, Register{type});
    return base;
}

bool Parser::declare_variable(Variable variable, std::string_view name, int32_t& index) {
    index = static_cast<int32_t>(function_.variables.size());
    function_.variables.push_back(std::move(variable));
    return bind(name, {Binding::Kind::variable, index, 1});
}

bool Parser::parse_body() {
    if (!expect('{')) return false;
    int32_t outer = scope_;
    while (!(scope_ == outer && token_.is('}'))) {
        if (token_.kind == TokenKind::end) return expected("'}'");
        if (!parse_statement()) return false;
    }
    advance();
    uint64_t frame = 0;
    for (Variable& variable : function_.variables) {
        if (variable.space != Space::frame) continue;
        uint64_t align = std::max(1u, variable.align_bytes);
        frame = (frame + align - 1) / align * align;
        variable.offset_bytes = static_cast<uint32_t>(frame);
        frame += variable.size_bytes;
        if (frame > kMaxFrameBytes) return fail("the function's local memory is too large");
    }
    function_.info.local_bytes_per_thread = static_cast<uint32_t>((frame + 15) / 16 * 16);
    return true;
}

bool Parser::parse_statement() {
    statement_line_ = token_.line;
    if (accept('{')) return open_scope();
    if (accept('}')) {
        scope_ = scopes_[static_cast<size_t>(scope_)].parent;
        return true;
    }
    if (accept(';')) return true;
    if (token_.kind == TokenKind::dotted) return parse_body_directive();
    return parse_instruction();
}

bool Parser::parse_body_directive() {
    std::string_view name = token_.text;
    advance();
    if (name == "reg") return parse_registers();
    if (name == "local" || name == "param") return parse_frame_variables(Space::frame);
    if (name == "shared") return parse_frame_variables(Space::shared);
    if (name == "global") return parse_frame_variables(Space::global);
    if (name == "const") return parse_frame_variables(Space::constant);
    if (name == "loc") return skip_loc();
    if (name == "pragma") return skip_to_semicolon();
    if (name == "file") return skip_file();
    return fail("unsupported directive '." + std::string(name) + "'");
}

bool Parser::parse_registers() {
    uint32_t vector = 1;
    if (accept_dotted("v2"))
        vector = 2;
    else if (accept_dotted("v4"))
        vector = 4;
    auto type = token_.kind == TokenKind::dotted ? type_from_name(token_.text) : std::nullopt;
    if (!type) return expected("a type");
    advance();
    do {
        if (!parse_register_name(*type, vector)) return false;
    } while (accept(','));
    return expect(';');
}

bool Parser::parse_register_name(Type type, uint32_t vector) {
    std::string_view name;
    if (!expect_identifier(name)) return false;
    uint64_t count = 1;
    if (accept('<')) {
        if (!expect_integer(count, kMaxRegisters) || !expect('>')) return false;
        if (function_.registers.size() + count * vector > kMaxRegisters) return fail("too many registers");
        if (vector > 1) return fail("a range of vector registers is not supported");
        Scope& scope = scopes_[static_cast<size_t>(scope_)];
        scope.ranges.push_back({name, add_registers(type, count), static_cast<uint32_t>(count)});
        return true;
    }
    if (function_.registers.size() + vector > kMaxRegisters) return fail("too many registers");
    int32_t base = add_registers(type, vector);
    Binding::Kind kind = vector > 1 ? Binding::Kind::vector : Binding::Kind::reg;
    return bind(name, {kind, base, static_cast<uint8_t>(vector)});
}

// Variables declared in a body. All but frame variables become variables of the module under a name of their own.
bool Parser::parse_frame_variables(Space space) {
    VariableDeclaration declaration;
    if (!parse_declaration(declaration)) return false;
    do {
        std::string_view name;
        Variable variable;
        bool is_open = false;
        if (!expect_identifier(name) || !parse_dimensions(declaration, variable.size_bytes, is_open)) return false;
        variable.name = std::string(name);
        variable.space = space;
        variable.type = declaration.type;
        variable.align_bytes = declaration.align_bytes;
        if (space != Space::frame) {
            VariableInfo info;
            info.name = function_.info.name + "::" + variable.name + "." + std::to_string(module_.variables.size());
            info.space = space == Space::shared   ? VariableSpace::shared
                         : space == Space::global ? VariableSpace::global
                                                  : VariableSpace::constant;
            info.size_bytes = variable.size_bytes;
            info.align_bytes = variable.align_bytes;
            variable.name = info.name;
            if (accept('=') && !parse_initializer(info, declaration)) return false;
            if (!finish_variable(info, declaration, is_open)) return false;
        } else if (is_open || variable.size_bytes > kMaxFrameBytes) {
            return fail("variable '" + variable.name + "' has no usable size");
        }
        int32_t index = 0;
        if (!declare_variable(std::move(variable), name, index)) return false;
    } while (accept(','));
    return expect(';');
}

// .loc file line column [, function_name label [+ n]] [, inlined_at file line column]
bool Parser::skip_loc() {
    uint64_t ignored = 0;
    for (int i = 0; i < 3; ++i) {
        if (!expect_integer(ignored, ~uint64_t{0})) return false;
    }
    while (accept(',')) {
        std::string_view name;
        if (!expect_identifier(name)) return false;
        if (name == "function_name") {
            if (!expect_identifier(name)) return false;
            if (accept('+') && !expect_integer(ignored, ~uint64_t{0})) return false;
        } else if (name == "inlined_at") {
            for (int i = 0; i < 3; ++i) {
                if (!expect_integer(ignored, ~uint64_t{0})) return false;
            }
        } else {
            return fail("unknown part '" + std::string(name) + "' of .loc");
        }
    }
    return true;
}

bool Parser::parse_label(const Token& name) {
    Label label;
    label.name = name.text;
    label.scope = scope_;
    label.instruction = static_cast<uint32_t>(function_.instructions.size());
    for (const Label& other : function_.labels) {
        if (other.scope == scope_ && other.name == name.text && function_.labels.size() < 4096) {
            return fail_at(name.line, "label '" + std::string(name.text) + "' is defined twice");
        }
    }
    if (accept_dotted("branchtargets") || accept_dotted("calltargets")) {
        label.is_targets = true;
        do {
            Operand target;
            if (!parse_operand(target)) return false;
            label.targets.push_back(std::move(target));
        } while (accept(','));
        if (!expect(';')) return false;
    } else if (accept_dotted("callprototype")) {
        label.is_prototype = true;
        if (!skip_to_semicolon()) return false;
    }
    function_.labels.push_back(std::move(label));
    return true;
}

bool Parser::parse_guard(Instruction& instruction) {
    instruction.guard_negated = accept('!');
    std::string_view name;
    if (!expect_identifier(name)) return false;
    auto binding = lookup(name);
    if (!binding || binding->kind != Binding::Kind::reg ||
        function_.registers[static_cast<size_t>(binding->index)].type != Type::pred) {
        return fail("'" + std::string(name) + "' is no predicate register");
    }
    instruction.guard = binding->index;
    return true;
}

bool Parser::parse_instruction() {
    Instruction instruction;
    Token first = token_;
    instruction.line = token_.line;
    if (accept('@') && !parse_guard(instruction)) return false;
    Token opcode = token_;
    if (!expect_identifier(instruction.opcode)) return false;
    if (token_.is(':') && opcode.text.data() == first.text.data()) {
        advance();
        return parse_label(opcode);
    }
    while (token_.kind == TokenKind::dotted) {
        instruction.modifiers.push_back(token_.text);
        advance();
    }
    while (!token_.is(';')) {
        if (instruction.operands.size() > 16) return fail("too many operands");
        instruction.operands.emplace_back();
        if (!parse_operand(instruction.operands.back())) return false;
        if (!accept(',') && !token_.is(';')) return expected("',' or ';'");
    }
    instruction.text = lexer_.between(first, token_);
    advance();
    function_.instructions.push_back(std::move(instruction));
    return true;
}

}  // namespace weft::ptx
