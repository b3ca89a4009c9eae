// Cuts a PTX text into tokens. Knows no grammar. Design: docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::ptx {

enum class TokenKind : uint8_t {
    end,
    identifier,   // add, %r1, $L__BB0_1, _Z1kPf
    dotted,       // .global, .shared::cta: the text is without the first dot
    number,       // 12, 0x1F, 12U, 1.5e3, 0f3F800000, 0d..., 7.8
    string,       // without the quotes
    punctuation,  // one character
    bad,          // a character that PTX does not have, or an open comment or string
};

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;
    uint32_t line = 1;
    bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
};

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}
    Token next();
    // The characters from the start of `first` to the start of `last`, for messages.
    std::string_view between(const Token& first, const Token& last) const;

  private:
    bool skip_space();
    Token make(TokenKind kind, size_t begin, size_t end);
    Token number();
    Token string();
    char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

    std::string_view text_;
    size_t pos_ = 0;
    uint32_t line_ = 1;
};

}  // namespace weft::ptx
