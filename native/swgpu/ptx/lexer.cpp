#include "swgpu/ptx/lexer.h"

namespace weft::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name_start(char c) { return is_alpha(c) || c == '_' || c == '$' || c == '%'; }
bool is_name(char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '$'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

constexpr std::string_view kPunctuation = "{}[]()<>,;:@!|+-*/%&^~=?.";

}  // namespace

bool Lexer::skip_space() {
    while (pos_ < text_.size()) {
        char c = text_[pos_];
        if (c == '\n') {
            ++line_;
            ++pos_;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            ++pos_;
        } else if (c == '/' && at(pos_ + 1) == '/') {
            while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
        } else if (c == '/' && at(pos_ + 1) == '*') {
            size_t end = text_.find("*/", pos_ + 2);
            if (end == std::string_view::npos) return false;
            for (; pos_ < end + 2; ++pos_) line_ += text_[pos_] == '\n';
        } else {
            break;
        }
    }
    // Images often carry the terminating zero, and bytes after it are not text.
    if (pos_ < text_.size() && text_[pos_] == '\0') pos_ = text_.size();
    return true;
}

Token Lexer::make(TokenKind kind, size_t begin, size_t end) {
    pos_ = end;
    return {kind, text_.substr(begin, end - begin), line_};
}

Token Lexer::number() {
    size_t begin = pos_, i = pos_;
    if (at(i) == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X')) {
        i += 2;
        while (is_hex(at(i))) ++i;
        if (at(i) == 'U') ++i;
        return make(TokenKind::number, begin, i);
    }
    bool is_float_bits = at(i) == '0' && (at(i + 1) == 'f' || at(i + 1) == 'F' || at(i + 1) == 'd' || at(i + 1) == 'D');
    if (is_float_bits) {
        i += 2;
        while (is_hex(at(i))) ++i;
        return make(TokenKind::number, begin, i);
    }
    if (at(i) == '0' && (at(i + 1) == 'b' || at(i + 1) == 'B')) i += 2;
    while (is_digit(at(i))) ++i;
    if (at(i) == '.' && is_digit(at(i + 1))) {
        ++i;
        while (is_digit(at(i))) ++i;
    } else if (at(i) == '.' && !is_name_start(at(i + 1))) {
        ++i;
    }
    if (at(i) == 'e' || at(i) == 'E') {
        size_t j = i + 1 + (at(i + 1) == '+' || at(i + 1) == '-');
        if (is_digit(at(j))) {
            while (is_digit(at(j))) ++j;
            i = j;
        }
    }
    if (at(i) == 'U') ++i;
    return make(TokenKind::number, begin, i);
}

Token Lexer::string() {
    size_t i = pos_ + 1;
    while (i < text_.size() && text_[i] != '"' && text_[i] != '\n') i += text_[i] == '\\' ? 2 : 1;
    if (i >= text_.size() || text_[i] != '"') return make(TokenKind::bad, pos_, pos_ + 1);
    Token token{TokenKind::string, text_.substr(pos_ + 1, i - pos_ - 1), line_};
    pos_ = i + 1;
    return token;
}

Token Lexer::next() {
    if (!skip_space()) {
        Token bad{TokenKind::bad, text_.substr(pos_, 2), line_};
        pos_ = text_.size();
        return bad;
    }
    if (pos_ >= text_.size()) return {TokenKind::end, text_.substr(text_.size(), 0), line_};
    char c = text_[pos_];
    if (is_digit(c)) return number();
    if (c == '"') return string();
    if (is_name_start(c) && (c != '%' || is_name(at(pos_ + 1)))) {
        size_t i = pos_ + 1;
        while (is_name(at(i))) ++i;
        return make(TokenKind::identifier, pos_, i);
    }
    // .2d is a modifier like others.
    const bool is_shape = c == '.' && is_digit(at(pos_ + 1)) && at(pos_ + 2) == 'd';
    if (is_shape || (c == '.' && (is_alpha(at(pos_ + 1)) || at(pos_ + 1) == '_'))) {
        size_t i = pos_ + 1;
        while (is_name(at(i)) || (at(i) == ':' && at(i + 1) == ':' && is_name(at(i + 2)))) i += at(i) == ':' ? 2 : 1;
        Token token = make(TokenKind::dotted, pos_, i);
        token.text.remove_prefix(1);
        return token;
    }
    if (kPunctuation.find(c) != std::string_view::npos) return make(TokenKind::punctuation, pos_, pos_ + 1);
    return make(TokenKind::bad, pos_, pos_ + 1);
}

std::string_view Lexer::between(const Token& first, const Token& last) const {
    size_t begin = static_cast<size_t>(first.text.data() - text_.data());
    size_t end = static_cast<size_t>(last.text.data() - text_.data());
    return end >= begin ? text_.substr(begin, end - begin) : std::string_view{};
}

}  // namespace weft::ptx
