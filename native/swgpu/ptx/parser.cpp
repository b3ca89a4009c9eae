// Module level of the PTX parser.
#include "swgpu/ptx/parser.h"

#include <algorithm>
#include <charconv>

#include "swgpu/ptx/parser_state.h"

namespace weft::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 36;
constexpr uint64_t kMaxInitializerBytes = uint64_t{1} << 28;

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

bool Parser::fail_at(uint32_t line, std::string_view text) {
    if (error_.is_ok()) {
        error_ = Status::error(ErrorCode::invalid_argument, "line " + std::to_string(line) + ": " + std::string(text));
    }
    return false;
}

bool Parser::expected(std::string_view what) {
    std::string found = token_.kind == TokenKind::end ? "the end of the text" : "'" + std::string(token_.text) + "'";
    return fail("expected " + std::string(what) + ", found " + found);
}

bool Parser::accept(char c) {
    if (!token_.is(c)) return false;
    advance();
    return true;
}

bool Parser::accept_dotted(std::string_view name) {
    if (token_.kind != TokenKind::dotted || token_.text != name) return false;
    advance();
    return true;
}

bool Parser::expect(char c) { return accept(c) || expected(std::string("'") + c + "'"); }

bool Parser::expect_identifier(std::string_view& name) {
    if (token_.kind != TokenKind::identifier) return expected("a name");
    name = token_.text;
    advance();
    return true;
}

bool Parser::expect_integer(uint64_t& value, uint64_t limit) {
    auto literal = token_.kind == TokenKind::number ? literal_from_text(token_.text) : std::nullopt;
    if (!literal || literal->is_float) return expected("an integer");
    if (literal->bits > limit) return fail("number '" + std::string(token_.text) + "' is too large");
    value = literal->bits;
    advance();
    return true;
}

Status Parser::run() {
    if (!accept_dotted("version")) expected("'.version'");
    if (error_.is_ok()) parse_version();
    while (error_.is_ok() && token_.kind != TokenKind::end) parse_directive();
    if (error_.is_ok() && module_.target_sm == 0) fail("the text has no .target");
    return std::move(error_);
}

bool Parser::parse_version() {
    std::string_view text = token_.text;
    size_t dot = text.find('.');
    uint32_t major = 0, minor = 0;
    if (token_.kind != TokenKind::number || dot == std::string_view::npos) return expected("a version");
    std::from_chars(text.data(), text.data() + dot, major);
    std::from_chars(text.data() + dot + 1, text.data() + text.size(), minor);
    module_.ptx_version = major * 10 + minor;
    advance();
    return true;
}

bool Parser::parse_target() {
    do {
        std::string_view name;
        if (!expect_identifier(name)) return false;
        if (name.substr(0, 3) != "sm_") continue;  // texmode_..., debug, map_f64_to_f32
        uint32_t sm = 0;
        auto end = std::from_chars(name.data() + 3, name.data() + name.size(), sm);
        if (end.ec != std::errc{} || sm < 10) return fail("unknown target '" + std::string(name) + "'");
        module_.target_sm = sm;
    } while (accept(','));
    return true;
}

bool Parser::parse_directive() {
    if (token_.kind != TokenKind::dotted) return expected("a directive");
    std::string_view name = token_.text;
    if (name == "section") return skip_section();
    if (name == "visible" || name == "extern" || name == "weak" || name == "common" || name == "entry" ||
        name == "func" || name == "global" || name == "const" || name == "shared") {
        return parse_linked();
    }
    advance();
    if (name == "target") return parse_target();
    if (name == "address_size") {
        uint64_t size = 0;
        if (!expect_integer(size, 64)) return false;
        return size == 64 || fail("only .address_size 64 is supported");
    }
    if (name == "file") return skip_file();
    if (name == "pragma") return skip_to_semicolon();
    if (name == "alias") return parse_alias();
    if (name == "loc") return skip_loc();
    return fail("unsupported directive '." + std::string(name) + "'");
}

// .file index "name" [, timestamp, size]
bool Parser::skip_file() {
    uint64_t ignored = 0;
    if (!expect_integer(ignored, ~uint64_t{0})) return false;
    if (token_.kind != TokenKind::string) return expected("a file name");
    advance();
    while (accept(',')) {
        if (!expect_integer(ignored, ~uint64_t{0})) return false;
    }
    return true;
}

bool Parser::skip_section() {
    while (token_.kind != TokenKind::end && !token_.is('{')) advance();
    if (!expect('{')) return false;
    while (token_.kind != TokenKind::end && !token_.is('}')) advance();
    return expect('}');
}

bool Parser::skip_to_semicolon() {
    while (token_.kind != TokenKind::end && token_.kind != TokenKind::bad && !token_.is(';')) advance();
    return expect(';');
}

bool Parser::parse_alias() {
    std::string_view name, target;
    uint32_t line = token_.line;
    if (!expect_identifier(name) || !expect(',') || !expect_identifier(target) || !expect(';')) return false;
    module_.aliases.push_back({std::string(name), std::string(target), line});
    return true;
}

bool Parser::parse_linked() {
    Linkage linkage = Linkage::local;
    if (accept_dotted("visible"))
        linkage = Linkage::visible;
    else if (accept_dotted("extern"))
        linkage = Linkage::external;
    else if (accept_dotted("weak"))
        linkage = Linkage::weak;
    else if (accept_dotted("common"))
        linkage = Linkage::common;
    if (accept_dotted("entry")) return parse_function(true, linkage);
    if (accept_dotted("func")) return parse_function(false, linkage);
    if (accept_dotted("global")) return parse_module_variable(VariableSpace::global, linkage);
    if (accept_dotted("const")) return parse_module_variable(VariableSpace::constant, linkage);
    if (accept_dotted("shared")) return parse_module_variable(VariableSpace::shared, linkage);
    return expected(".entry, .func, .global, .const or .shared");
}

// .attribute(.managed) and .attribute(.unified(a, b))
bool Parser::skip_attribute(bool& is_managed) {
    if (!expect('(')) return false;
    for (int depth = 1; depth > 0;) {
        if (token_.kind == TokenKind::end) return expected("')'");
        if (token_.kind == TokenKind::dotted && token_.text == "managed") is_managed = true;
        depth += token_.is('(') - token_.is(')');
        advance();
    }
    return true;
}

// .align N, .v2/.v4, .ptr [.space], the type, in any order.
bool Parser::parse_declaration(VariableDeclaration& declaration) {
    bool has_type = false;
    while (token_.kind == TokenKind::dotted) {
        std::string_view name = token_.text;
        advance();
        if (name == "align") {
            uint64_t align = 0;
            if (!expect_integer(align, 1 << 16)) return false;
            if (align == 0 || (align & (align - 1)) != 0) return fail(".align is not a power of two");
            declaration.align_bytes = static_cast<uint32_t>(align);
        } else if (name == "v2" || name == "v4") {
            declaration.vector = name == "v2" ? 2 : 4;
        } else if (name == "ptr") {
            // The alignment that follows is of what the pointer points to.
            declaration.is_pointer = true;
            while (token_.kind == TokenKind::dotted && !type_from_name(token_.text)) {
                bool is_align = token_.text == "align";
                advance();
                uint64_t ignored = 0;
                if (is_align && !expect_integer(ignored, 1 << 16)) return false;
            }
        } else if (name == "attribute") {
            if (!skip_attribute(declaration.is_managed)) return false;
        } else if (auto type = type_from_name(name)) {
            declaration.type = *type;
            has_type = true;
        } else {
            return fail("unsupported type or attribute '." + std::string(name) + "'");
        }
    }
    if (!has_type) return expected("a type");
    if (declaration.type == Type::pred) return fail("a variable cannot be of type .pred");
    uint32_t natural = size_of(declaration.type) * declaration.vector;
    if (declaration.align_bytes == 0) declaration.align_bytes = natural;
    return true;
}

// [4][2], or [] which leaves the size open.
bool Parser::parse_dimensions(const VariableDeclaration& declaration, uint64_t& size, bool& is_open) {
    size = uint64_t{size_of(declaration.type)} * declaration.vector;
    is_open = false;
    while (accept('[')) {
        if (accept(']')) {
            is_open = true;
            continue;
        }
        uint64_t extent = 0;
        if (!expect_integer(extent, kMaxVariableBytes) || !expect(']')) return false;
        if (extent != 0 && size > kMaxVariableBytes / extent) return fail("the variable is too large");
        size *= extent;
    }
    return true;
}

bool Parser::parse_module_variable(VariableSpace space, Linkage linkage) {
    VariableDeclaration declaration;
    if (!parse_declaration(declaration)) return false;
    do {
        VariableInfo variable;
        std::string_view name;
        bool is_open = false;
        if (!expect_identifier(name) || !parse_dimensions(declaration, variable.size_bytes, is_open)) return false;
        variable.name = std::string(name);
        variable.space = space;
        variable.linkage = linkage;
        variable.align_bytes = declaration.align_bytes;
        variable.is_managed = declaration.is_managed;
        if (accept('=') && !parse_initializer(variable, declaration)) return false;
        if (!finish_variable(variable, declaration, is_open)) return false;
    } while (accept(','));
    return expect(';');
}

bool Parser::finish_variable(VariableInfo& variable, const VariableDeclaration& declaration, bool is_open) {
    if (is_open) {
        uint64_t element = uint64_t{size_of(declaration.type)} * declaration.vector;
        variable.size_bytes = round_up(variable.initializer.size(), element);
    }
    if (variable.initializer.size() > variable.size_bytes) return fail("the initialiser is larger than the variable");
    if (variable.space == VariableSpace::shared && !variable.initializer.empty()) {
        return fail("a shared variable cannot be initialised");
    }
    module_.variables.push_back(std::move(variable));
    return true;
}

bool Parser::parse_initializer(VariableInfo& variable, const VariableDeclaration& declaration) {
    uint64_t at = 0;
    if (!token_.is('{')) return parse_initial_value(variable, declaration, at);
    int depth = 0;
    do {
        while (accept('{')) ++depth;
        if (!token_.is('}') && !parse_initial_value(variable, declaration, at)) return false;
        while (depth > 0 && accept('}')) --depth;
    } while (depth > 0 && accept(','));
    return depth == 0 || expected("'}'");
}

bool Parser::parse_initial_symbol(Relocation& relocation) {
    std::string_view name;
    if (!expect_identifier(name)) return false;
    if (name == "generic" && accept('(')) {
        if (!expect_identifier(name) || !expect(')')) return false;
    }
    relocation.symbol = std::string(name);
    while (token_.is('+') || token_.is('-')) {
        bool minus = token_.is('-');
        advance();
        uint64_t addend = 0;
        if (!expect_integer(addend, uint64_t{1} << 40)) return false;
        relocation.addend += minus ? -static_cast<int64_t>(addend) : static_cast<int64_t>(addend);
    }
    return true;
}

bool Parser::parse_initial_value(VariableInfo& variable, const VariableDeclaration& declaration, uint64_t& at) {
    uint32_t size = size_of(declaration.type);
    if (at + size > kMaxInitializerBytes) return fail("the initialiser is too large");
    variable.initializer.resize(at + size);
    Relocation relocation{at, static_cast<uint8_t>(size), 0, {}, 0};
    if (token_.kind == TokenKind::identifier) {
        if (!parse_initial_symbol(relocation)) return false;
        variable.relocations.push_back(std::move(relocation));
        at += size;
        return true;
    }
    bool minus = accept('-');
    auto literal = token_.kind == TokenKind::number ? literal_from_text(token_.text) : std::nullopt;
    if (!literal) return expected("an initial value");
    advance();
    if (accept('(')) {  // 0xFF00(symbol): one byte of an address
        if (literal->bits == 0) return fail("the mask of an address is 0");
        relocation.shift_bits = static_cast<uint8_t>(__builtin_ctzll(literal->bits));
        if (!parse_initial_symbol(relocation) || !expect(')')) return false;
        variable.relocations.push_back(std::move(relocation));
        at += size;
        return true;
    }
    if (minus) literal = negated(*literal);
    uint64_t bits = literal->bits;
    if (literal->is_float || declaration.type == Type::f32 || declaration.type == Type::f64) {
        bits = size == 8 ? f64_bits(*literal) : f32_bits(*literal);
    }
    for (uint32_t i = 0; i < size && i < 8; ++i) variable.initializer[at + i] = static_cast<uint8_t>(bits >> (8 * i));
    at += size;
    return true;
}

bool Parser::parse_function(bool is_entry, Linkage linkage) {
    function_ = Function{};
    scopes_.clear();
    scope_ = -1;
    function_.line = token_.line;
    FunctionInfo& info = function_.info;
    info.is_entry = is_entry;
    info.linkage = linkage;
    info.ptx_version = module_.ptx_version;
    info.target_sm = module_.target_sm;
    if (!open_scope()) return false;
    bool is_managed = false;
    if (accept_dotted("attribute") && !skip_attribute(is_managed)) return false;
    if (token_.is('(') && !parse_formals(function_.returns, true)) return false;
    std::string_view name;
    if (!expect_identifier(name)) return false;
    info.name = std::string(name);
    if (token_.is('(') && !parse_formals(function_.formals, false)) return false;
    if (is_entry) lay_out_kernel_parameters();
    if (!parse_function_attributes()) return false;
    if (!accept(';')) {
        info.is_defined = true;
        if (linkage == Linkage::external) return fail("an .extern function cannot have a body");
        if (!parse_body()) return false;
    }
    for (const Scope& scope : scopes_) function_.scope_parent.push_back(scope.parent);
    module_.functions.push_back(std::move(function_));
    return true;
}

bool Parser::parse_formals(std::vector<FormalParameter>& formals, bool is_return) {
    if (!expect('(')) return false;
    if (accept(')')) return true;
    do {
        if (!parse_formal(formals, is_return)) return false;
    } while (accept(','));
    return expect(')');
}

bool Parser::parse_formal(std::vector<FormalParameter>& formals, bool is_return) {
    FormalParameter formal;
    std::string_view name;
    if (accept_dotted("reg")) {
        if (function_.info.is_entry) return fail("a parameter of an entry cannot be a register");
        auto type = token_.kind == TokenKind::dotted ? type_from_name(token_.text) : std::nullopt;
        if (!type) return expected("a type");
        advance();
        if (!expect_identifier(name)) return false;
        formal = {true, add_registers(*type, 1), *type, size_of(*type), size_of(*type)};
        formals.push_back(formal);
        return bind(name, {Binding::Kind::reg, formal.index, 1});
    }
    if (!accept_dotted("param")) return expected("'.param' or '.reg'");
    VariableDeclaration declaration;
    uint64_t size = 0;
    bool is_open = false;
    if (!parse_declaration(declaration) || !expect_identifier(name)) return false;
    if (!parse_dimensions(declaration, size, is_open)) return false;
    if (is_open || size > 65536) return fail("parameter '" + std::string(name) + "' has no usable size");
    Variable variable{
        std::string(name),       function_.info.is_entry && !is_return ? Space::kernel_param : Space::frame,
        declaration.type,        size,
        declaration.align_bytes, 0,
        declaration.is_pointer};
    formal.type = declaration.type;
    formal.size_bytes = static_cast<uint32_t>(size);
    formal.align_bytes = declaration.align_bytes;
    if (!declare_variable(std::move(variable), name, formal.index)) return false;
    formals.push_back(formal);
    return true;
}

void Parser::lay_out_kernel_parameters() {
    uint64_t at = 0;
    for (const FormalParameter& formal : function_.formals) {
        Variable& variable = function_.variables[static_cast<size_t>(formal.index)];
        at = round_up(at, std::max(1u, variable.align_bytes));
        variable.offset_bytes = static_cast<uint32_t>(at);
        function_.info.parameters.push_back(
            {variable.name, variable.offset_bytes, formal.size_bytes, variable.align_bytes, variable.is_pointer});
        at += formal.size_bytes;
    }
    function_.info.parameter_bytes = static_cast<uint32_t>(at);
}

bool Parser::parse_extents(uint32_t* extents) {
    extents[0] = extents[1] = extents[2] = 1;
    for (int i = 0; i < 3; ++i) {
        uint64_t value = 0;
        if (!expect_integer(value, 1 << 20)) return false;
        extents[i] = static_cast<uint32_t>(value);
        if (!accept(',')) return true;
    }
    return fail("too many dimensions");
}

bool Parser::parse_function_attributes() {
    FunctionInfo& info = function_.info;
    while (token_.kind == TokenKind::dotted) {
        std::string_view name = token_.text;
        uint32_t extents[3];
        uint64_t value = 0;
        advance();
        if (name == "maxntid") {
            if (!parse_extents(extents)) return false;
            info.max_threads =
                static_cast<uint32_t>(std::min<uint64_t>(uint64_t{extents[0]} * extents[1] * extents[2], 1024));
        } else if (name == "reqntid") {
            if (!parse_extents(extents)) return false;
            info.required_block = {extents[0], extents[1], extents[2]};
        } else if (name == "minnctapersm") {
            if (!expect_integer(value, 1 << 20)) return false;
            info.min_blocks_per_sm = static_cast<uint32_t>(value);
        } else if (name == "maxnreg" || name == "maxnctapersm" || name == "abi_preserve" ||
                   name == "abi_preserve_control") {
            if (!expect_integer(value, 1 << 20)) return false;
        } else if (name == "pragma") {
            if (!skip_to_semicolon()) return false;
        } else if (name != "noreturn") {
            return fail("unsupported attribute '." + std::string(name) + "'");
        }
    }
    return true;
}

Result<ModuleText> parse(std::string_view text) {
    Parser parser(text);
    Status status = parser.run();
    if (!status.is_ok()) return status;
    return parser.take();
}

}  // namespace weft::ptx
