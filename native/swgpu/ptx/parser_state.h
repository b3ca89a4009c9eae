// The parser's inside, shared by its files: parser.cpp (module level), parser_body.cpp (function bodies),
// parser_operand.cpp (operands). Each parse_* returns false after it has set the error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "swgpu/ptx/ast.h"
#include "swgpu/ptx/lexer.h"
#include "swgpu/ptx/literal.h"

namespace weft::ptx {

struct Binding {
    enum class Kind : uint8_t { reg, vector, variable } kind = Kind::reg;
    int32_t index = -1;
    uint8_t width = 1;  // of a vector register: its elements have consecutive indices
};

struct RegisterRange {
    std::string_view prefix;
    int32_t base;
    uint32_t count;
};

struct Scope {
    int32_t parent = -1;
    std::unordered_map<std::string_view, Binding> names;
    std::vector<RegisterRange> ranges;
};

struct VariableDeclaration {
    Type type = Type::b8;
    uint32_t align_bytes = 0;
    uint32_t vector = 1;
    bool is_pointer = false;
    bool is_managed = false;
};

class Parser {
  public:
    explicit Parser(std::string_view text) : lexer_(text) { advance(); }
    Status run();
    ModuleText take() { return std::move(module_); }

  private:
    // tokens
    void advance() { token_ = lexer_.next(); }
    bool fail(std::string_view text) { return fail_at(token_.line, text); }
    bool fail_at(uint32_t line, std::string_view text);
    bool expected(std::string_view what);
    bool accept(char c);
    bool accept_dotted(std::string_view name);
    bool expect(char c);
    bool expect_identifier(std::string_view& name);
    bool expect_integer(uint64_t& value, uint64_t limit);

    // module level (parser.cpp)
    bool parse_directive();
    bool parse_version();
    bool parse_target();
    bool parse_linked();
    bool skip_file();
    bool skip_section();
    bool skip_to_semicolon();
    bool skip_attribute(bool& is_managed);
    bool parse_alias();
    bool parse_module_variable(VariableSpace space, Linkage linkage);
    bool parse_declaration(VariableDeclaration& declaration);
    bool parse_dimensions(const VariableDeclaration& declaration, uint64_t& size, bool& is_open);
    bool parse_initializer(VariableInfo& variable, const VariableDeclaration& declaration);
    bool parse_initial_value(VariableInfo& variable, const VariableDeclaration& declaration, uint64_t& at);
    bool parse_initial_symbol(Relocation& relocation);
    bool finish_variable(VariableInfo& variable, const VariableDeclaration& declaration, bool is_open);
    bool parse_function(bool is_entry, Linkage linkage);
    bool parse_formals(std::vector<FormalParameter>& formals, bool is_return);
    bool parse_formal(std::vector<FormalParameter>& formals, bool is_return);
    bool parse_function_attributes();
    bool parse_extents(uint32_t* extents);
    void lay_out_kernel_parameters();

    // bodies (parser_body.cpp)
    bool parse_body();
    bool parse_statement();
    bool parse_body_directive();
    bool parse_registers();
    bool parse_register_name(Type type, uint32_t vector);
    bool parse_frame_variables(Space space);
    bool skip_loc();
    bool parse_label(const Token& name);
    bool parse_instruction();
    bool parse_guard(Instruction& instruction);
    int32_t add_registers(Type type, uint64_t count);
    bool bind(std::string_view name, Binding binding);
    bool open_scope();
    bool declare_variable(Variable variable, std::string_view name, int32_t& index);

    // operands (parser_operand.cpp)
    bool parse_operand(Operand& operand);
    bool parse_simple(Operand& operand);
    bool parse_name(Operand& operand);
    bool parse_address(Operand& operand);
    bool parse_offset(Operand& operand);
    bool parse_element_index(Operand& operand);
    bool parse_group(Operand& operand, Operand::Kind kind, char close);
    bool parse_immediate(Operand& operand);
    std::optional<Binding> lookup(std::string_view name) const;
    bool parse_component(uint8_t& component);

    Lexer lexer_;
    Token token_;
    Status error_;
    ModuleText module_;
    Function function_;
    std::vector<Scope> scopes_;
    int32_t scope_ = -1;
    uint32_t statement_line_ = 0;
};

}  // namespace weft::ptx
