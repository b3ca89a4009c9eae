#include "swgpu/engine/builtins.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

constexpr size_t kMaxText = 1 << 16;
// Widths and precisions are cut to what the buffer of one directive holds.
constexpr int32_t kMaxWidth = 500;

bool read_text(Context& context, uint32_t lane, uint64_t address, std::string& text) {
    for (; text.size() < kMaxText; ++address) {
        const uint8_t* at = host_pointer(context, lane, address, 1, false);
        if (at == nullptr) return false;
        if (*at == 0) return true;
        text.push_back(static_cast<char>(*at));
    }
    return true;
}

// Walks the packed argument buffer: each argument at a multiple of its size.
class ArgumentReader {
  public:
    ArgumentReader(Context& context, uint32_t lane, uint64_t buffer)
        : context_(context), lane_(lane), buffer_(buffer) {}
    uint64_t next(uint32_t size) {
        offset_ = (offset_ + size - 1) / size * size;
        const uint8_t* at = host_pointer(context_, lane_, buffer_ + offset_, size, false);
        offset_ += size;
        uint64_t value = 0;
        if (at != nullptr) std::memcpy(&value, at, size);
        good_ &= at != nullptr;
        ++count_;
        return value;
    }
    bool good() const { return good_; }
    int32_t count() const { return count_; }

  private:
    Context& context_;
    uint32_t lane_;
    uint64_t buffer_;
    uint64_t offset_ = 0;
    int32_t count_ = 0;
    bool good_ = true;
};

struct Directive {
    std::string flags;  // flags, width and precision as written
    uint32_t size = 4;
    char kind = 0;
};

bool ends_in_three_digits(const std::string& text) {
    size_t last = text.find_last_not_of("0123456789");
    return text.size() - (last == std::string::npos ? 0 : last + 1) >= 3;
}

// Reads one directive behind '%'; stars take their number from the arguments.
size_t read_directive(const std::string& format, size_t at, ArgumentReader& arguments, Directive& directive) {
    for (; at < format.size(); ++at) {
        char c = format[at];
        if (c == '*') {
            int32_t number = static_cast<int32_t>(arguments.next(4));
            directive.flags += std::to_string(std::clamp(number, -kMaxWidth, kMaxWidth));
        } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
            if (directive.flags.size() < 24 && (c == '.' || !ends_in_three_digits(directive.flags)))
                directive.flags.push_back(c);
        } else if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
            directive.size = 8;
        } else if (c != 'h') {
            directive.kind = c;
            return at + 1;
        }
    }
    return at;
}

void append(std::string& out, const Directive& directive, const char* length, auto value) {
    char buffer[512];
    std::string format = "%" + directive.flags + length + directive.kind;
    int written = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
    if (written > 0) out.append(buffer, std::min<size_t>(static_cast<size_t>(written), sizeof buffer - 1));
}

void format_directive(Context& context, uint32_t lane, const Directive& directive, ArgumentReader& arguments,
                      std::string& out) {
    switch (directive.kind) {
        case '%': out.push_back('%'); break;
        case 'd':
        case 'i': {
            uint64_t value = arguments.next(directive.size);
            append(out, directive, "ll",
                   static_cast<long long>(directive.size == 8 ? static_cast<int64_t>(value)
                                                              : static_cast<int32_t>(value)));
            break;
        }
        case 'u':
        case 'x':
        case 'X':
        case 'o': append(out, directive, "ll", static_cast<unsigned long long>(arguments.next(directive.size))); break;
        case 'c': append(out, directive, "", static_cast<int>(arguments.next(4))); break;
        case 'p':
            out += "0x";
            append(out, {directive.flags, 8, 'x'}, "ll", static_cast<unsigned long long>(arguments.next(8)));
            break;
        case 's': {
            std::string text;
            if (!read_text(context, lane, arguments.next(8), text)) text = "(bad pointer)";
            append(out, directive, "", text.c_str());
            break;
        }
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G':
        case 'a':
        case 'A': {
            uint64_t bits = arguments.next(8);
            double value = 0;
            std::memcpy(&value, &bits, 8);
            append(out, directive, "", value);
            break;
        }
        default:
            out.push_back('%');
            out.push_back(directive.kind);
            break;
    }
}

}  // namespace

int32_t print_formatted(Context& context, uint32_t lane, uint64_t format_address, uint64_t buffer) {
    std::string format, out;
    if (!read_text(context, lane, format_address, format)) return -1;
    ArgumentReader arguments(context, lane, buffer);
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            out.push_back(format[at++]);
            continue;
        }
        Directive directive;
        at = read_directive(format, at + 1, arguments, directive);
        if (directive.kind == 0) break;
        format_directive(context, lane, directive, arguments, out);
    }
    if (context.block->launch->output != nullptr) context.block->launch->output->write(out);
    return arguments.good() ? arguments.count() : -1;
}

void report_assert(Context& context, uint32_t lane, const BuiltinArguments& arguments) {
    OutputSink* sink = context.block->launch->output;
    if (sink == nullptr) return;
    std::string message, file, function;
    read_text(context, lane, arguments[0], message);
    read_text(context, lane, arguments[1], file);
    read_text(context, lane, arguments[3], function);
    const LaunchData& launch = *context.block->launch;
    uint32_t thread = context.warp->index * kWarpLanes + lane;
    const Dim3& id = context.block->id;
    char where[160];
    std::snprintf(where, sizeof where, ": block: [%u,%u,%u], thread: [%u,%u,%u] ", id.x, id.y, id.z,
                  launch.tid[0][thread], launch.tid[1][thread], launch.tid[2][thread]);
    sink->write_error(file + ":" + std::to_string(static_cast<uint32_t>(arguments[2])) + ": " + function + where +
                      "Assertion `" + message + "` failed.\n");
}

}  // namespace weft::engine
