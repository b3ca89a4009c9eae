// Errors as values. A Status is one machine word while all is well; an error carries a code and one line of text.
// Nothing here throws. Design: docs/design/call-path.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

enum class ErrorCode {
    invalid_argument,
    not_found,
    permission_denied,
    protocol,     // the other end broke the wire's rules
    version,      // the two ends share no protocol version
    unavailable,  // unreachable, closed, timed out
    out_of_memory,
    unsupported,
    io,        // a system call failed; the text holds its name and errno
    internal,  // a bug of ours
};

std::string_view to_string(ErrorCode code);

class [[nodiscard]] Status {
  public:
    Status() = default;
    static Status ok() { return {}; }
    static Status error(ErrorCode code, std::string text);
    // "NAME: TEXT" of the errno given, with code io.
    static Status from_errno(std::string_view name, int error_number);

    bool is_ok() const { return error_ == nullptr; }
    explicit operator bool() const { return is_ok(); }
    // Both only on an error.
    ErrorCode code() const { return error_->code; }
    const std::string& text() const { return error_->text; }

  private:
    struct Error {
        ErrorCode code;
        std::string text;
    };
    std::unique_ptr<Error> error_;
};

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
    Result(Status error) : status_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

    bool is_ok() const { return value_.has_value(); }
    explicit operator bool() const { return is_ok(); }
    T& value() { return *value_; }
    const T& value() const { return *value_; }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }
    const T& operator*() const { return *value_; }
    T& operator*() { return *value_; }
    const Status& status() const { return status_; }
    Status take_status() { return std::move(status_); }

  private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace weft
