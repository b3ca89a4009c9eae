#include "driver/null/scan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace weft::nulldriver {
namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
}

// Words and single punctuation marks; comments and strings are skipped.
class Tokens {
  public:
    explicit Tokens(std::string_view text) : text_(text) {}

    std::string_view next() {
        skip();
        if (at_ >= text_.size()) return {};
        const std::size_t start = at_;
        if (text_[at_] == '"') {
            at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
        } else if (is_word(text_[at_])) {
            while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        } else {
            ++at_;
        }
        return text_.substr(start, at_ - start);
    }
    // Past the body whose '{' was just read.
    void skip_body() {
        for (int depth = 1; depth > 0;) {
            const std::string_view token = next();
            if (token.empty()) return;
            depth += token == "{" ? 1 : token == "}" ? -1 : 0;
        }
    }

  private:
    void skip() {
        while (at_ < text_.size()) {
            if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
                ++at_;
            } else if (text_.substr(at_, 2) == "//") {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (text_.substr(at_, 2) == "/*") {
                const std::size_t end = text_.find("*/", at_ + 2);
                at_ = end == std::string_view::npos ? text_.size() : end + 2;
            } else {
                return;
            }
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::optional<std::uint32_t> type_bytes(std::string_view token) {
    constexpr std::array<std::pair<std::string_view, std::uint32_t>, 20> kTypes{
        {{".b8", 1},   {".u8", 1},  {".s8", 1},  {".b16", 2},   {".u16", 2},    {".s16", 2},       {".f16", 2},
         {".bf16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4},   {".f32", 4},    {".f16x2", 4},     {".b64", 8},
         {".u64", 8},  {".s64", 8}, {".f64", 8}, {".b128", 16}, {".texref", 8}, {".samplerref", 8}}};
    for (const auto& [name, bytes] : kTypes) {
        if (name == token) return bytes;
    }
    return std::nullopt;
}

std::uint64_t number(std::string_view token) {
    std::uint64_t value = 0;
    const bool hex = token.starts_with("0x") || token.starts_with("0X");
    if (hex) token.remove_prefix(2);
    std::from_chars(token.data(), token.data() + token.size(), value, hex ? 16 : 10);
    return value;
}

// What a declaration says of a name, up to the token that ends it.
struct Declared {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t align = 0;
    std::string_view ended_by;
};

Declared declaration(Tokens& tokens) {
    Declared declared;
    std::uint64_t count = 1;
    std::uint32_t vector = 1;
    std::uint32_t unit = 0;
    while (true) {
        const std::string_view token = tokens.next();
        if (token.empty() || token == "," || token == ")" || token == ";" || token == "=") {
            declared.ended_by = token;
            break;
        }
        if (token == ".align") {
            declared.align = static_cast<std::uint32_t>(number(tokens.next()));
        } else if (token == ".ptr") {
            continue;
        } else if (const auto bytes = type_bytes(token)) {
            unit = *bytes;
        } else if (token == ".v2" || token == ".v4") {
            vector = token == ".v2" ? 2 : 4;
        } else if (token == "[") {
            const std::string_view length = tokens.next();
            if (length != "]") {
                count *= number(length);
                tokens.next();
            } else {
                count = 0;
            }
        } else if (token.front() != '.') {
            declared.name = token;
        }
    }
    declared.size = count * vector * unit;
    if (declared.align == 0) declared.align = std::max(1u, unit * vector);
    return declared;
}

std::string_view scan_parameters(Tokens& tokens, ptx::FunctionInfo* info) {
    std::uint32_t offset = 0;
    std::string_view end;
    do {
        // `.ptr ... .align N` states the pointee's alignment, not the parameter's; parameters here are aligned to their
        // own size at least.
        const Declared declared = declaration(tokens);
        end = declared.ended_by;
        if (declared.name.empty()) continue;
        const auto size = static_cast<std::uint32_t>(declared.size);
        const std::uint32_t align =
            size <= 8 && (size & (size - 1)) == 0 && size > 0 ? size : std::max(1u, declared.align);
        offset = (offset + align - 1) / align * align;
        info->parameters.push_back({declared.name, offset, size, align, false});
        offset += size;
    } while (end == ",");
    info->parameter_bytes = offset;
    return end;
}

void scan_entry(Tokens& tokens, Scan* scan) {
    ptx::FunctionInfo info;
    info.name = tokens.next();
    info.is_entry = true;
    info.linkage = ptx::Linkage::visible;
    info.register_count = 32;
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == "(") {
            scan_parameters(tokens, &info);
        } else if (token == ".maxntid" || token == ".reqntid") {
            info.max_threads = static_cast<std::uint32_t>(number(tokens.next()));
        } else if (token == ",") {
            info.max_threads *= static_cast<std::uint32_t>(std::max<std::uint64_t>(1, number(tokens.next())));
        } else if (token == "{") {
            info.is_defined = true;
            tokens.skip_body();
            break;
        } else if (token == ";") {
            break;
        }
    }
    scan->functions.push_back(std::move(info));
}

void scan_variable(Tokens& tokens, ptx::VariableSpace space, Scan* scan) {
    const Declared declared = declaration(tokens);
    if (declared.ended_by == "=") {
        for (std::string_view token = tokens.next(); !token.empty() && token != ";"; token = tokens.next()) {
        }
    }
    if (declared.name.empty() || declared.size == 0) return;
    ptx::VariableInfo variable;
    variable.name = declared.name;
    variable.space = space;
    variable.linkage = ptx::Linkage::visible;
    variable.size_bytes = declared.size;
    variable.align_bytes = declared.align;
    scan->variables.push_back(std::move(variable));
}

}  // namespace

Scan scan_ptx(std::string_view text) {
    Scan scan;
    Tokens tokens(text);
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ".entry") {
            scan_entry(tokens, &scan);
        } else if (token == "{") {
            tokens.skip_body();  // of a device function
        } else if (token == ".global" || token == ".const") {
            scan_variable(tokens, token == ".global" ? ptx::VariableSpace::global : ptx::VariableSpace::constant,
                          &scan);
        }
    }
    return scan;
}

}  // namespace weft::nulldriver
