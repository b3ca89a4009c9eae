// Names in PTX text: .entry with its .param list, and .global/.const variables of module scope. Reads only as much of
// the grammar as that needs (PTX ISA, "Kernel and Function Directives", "State Spaces"). See symbols.h.
#include <array>
#include <cctype>
#include <string_view>

#include "executor/symbols.h"

namespace weft::executor {

namespace {

// Words, numbers, directives (with their dot) and single characters; comments and strings are skipped.
class Tokens {
  public:
    explicit Tokens(std::string_view text) : rest_(text) {}

    // Empty at the end.
    std::string_view next() {
        skip_space();
        if (rest_.empty() || rest_.front() == '\0') return {};
        if (rest_.front() == '"') return take(string_length());
        std::size_t length = 0;
        while (length < rest_.size() && is_word(rest_[length])) ++length;
        return take(length == 0 ? 1 : length);
    }

  private:
    static bool is_word(char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
    }
    std::string_view take(std::size_t length) {
        const std::string_view token = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return token;
    }
    std::size_t string_length() const {
        const std::size_t end = rest_.find('"', 1);
        return end == std::string_view::npos ? rest_.size() : end + 1;
    }
    void skip_space() {
        for (;;) {
            std::size_t i = 0;
            while (i < rest_.size() && std::isspace(static_cast<unsigned char>(rest_[i]))) ++i;
            rest_.remove_prefix(i);
            if (rest_.starts_with("//")) {
                skip_past("\n");
            } else if (rest_.starts_with("/*")) {
                skip_past("*/");
            } else {
                return;
            }
        }
    }
    void skip_past(std::string_view mark) {
        const std::size_t at = rest_.find(mark);
        rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + mark.size());
    }

    std::string_view rest_;
};

std::uint32_t type_bytes(std::string_view type) {
    const std::string_view digits = type.substr(std::min<std::size_t>(2, type.size()));
    if (digits == "8") return 1;
    if (digits == "16") return 2;
    if (digits == "32") return 4;
    if (digits == "64") return 8;
    if (digits == "128") return 16;
    return 0;
}

bool is_scalar_type(std::string_view token) {
    return token.size() > 2 && token[0] == '.' && std::string_view("busf").find(token[1]) != std::string_view::npos &&
           type_bytes(token) != 0;
}

std::uint32_t to_number(std::string_view digits) {
    std::uint64_t value = 0;
    for (const char c : digits) {
        if (c < '0' || c > '9' || value > 0xffffff) return 0;
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return static_cast<std::uint32_t>(value);
}

// `.param .align 8 .b8 name[24]`, `.param .u64 .ptr .global .align 16 name`: up to `,` or `)`, which is returned.
std::string_view read_parameter(Tokens& tokens, std::vector<wire::ParameterInfo>* parameters) {
    std::uint32_t element = 0, count = 1, alignment = 0;
    bool pointer = false;
    for (;;) {
        std::string_view token = tokens.next();
        if (token.empty() || token == "," || token == ")") {
            if (element != 0 && parameters->size() < wire::kMaxParameters) {
                if (alignment == 0) alignment = element;
                const std::uint32_t end =
                    parameters->empty() ? 0 : parameters->back().offset + parameters->back().size_bytes;
                parameters->push_back({(end + alignment - 1) / alignment * alignment, element * count});
            }
            return token;
        }
        if (token == ".ptr") pointer = true;  // its .align is of what it points to
        if (token == ".align") {
            const std::uint32_t value = to_number(tokens.next());
            if (!pointer) alignment = value;
        } else if (is_scalar_type(token)) {
            element = type_bytes(token);
        } else if (token == "[") {
            count = to_number(tokens.next());
        }
    }
}

void read_entry(Tokens& tokens, ImageSymbols* out) {
    KernelSymbol kernel;
    kernel.name = std::string(tokens.next());
    std::string_view token = tokens.next();
    if (token == "(") {
        while (token == "(" || token == ",") token = read_parameter(tokens, &kernel.parameters);
    }
    if (!kernel.name.empty() && out->kernels.size() < wire::kMaxFunctions) out->kernels.push_back(std::move(kernel));
}

// `.global .align 4 .b8 name[16] = {...};`: the last word before `[`, `=` or `;`.
void read_variables(Tokens& tokens, ImageSymbols* out) {
    std::string_view name;
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ".align" || token == ".attribute") {
            tokens.next();
        } else if (token == "[" || token == "=" || token == ";" || token == ",") {
            if (!name.empty() && out->globals.size() < wire::kMaxGlobals) out->globals.emplace_back(name);
            name = {};
            if (token != ",") break;
        } else if (token[0] != '.' && token[0] != '(' && token[0] != ')') {
            name = token;
        }
    }
}

}  // namespace

void scan_ptx(std::string_view text, ImageSymbols* out) {
    Tokens tokens(text);
    int depth = 0;
    bool is_extern = false;
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == "{") ++depth;
        if (token == "}") --depth;
        if (depth != 0) continue;
        if (token == ".entry") {
            read_entry(tokens, out);
        } else if ((token == ".global" || token == ".const") && !is_extern) {
            read_variables(tokens, out);
        }
        is_extern = token == ".extern";
    }
}

}  // namespace weft::executor
