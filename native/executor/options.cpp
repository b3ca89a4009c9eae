// See options.h.
#include "executor/options.h"

#include <charconv>
#include <map>
#include <string_view>

namespace weft::executor {

const char kUsage[] =
    "usage: weft-executor --fd N --path shm|tcp --driver LIBRARY [--devices 0,1] [--cap-bytes N,N] [--cache-dir DIR]\n"
    "                     [--cache-bytes N] [--session-name NAME] [--status-fd N] [--usage-fd N --usage-slot N]\n"
    "       weft-executor --probe --driver LIBRARY\n"
    "       weft-executor --replay FILE --driver LIBRARY [--devices 0,1]\n"
    "Started by weft serve, one for each client process.\n";

namespace {

Status wrong(std::string_view option, std::string_view value, std::string_view wanted) {
    return Status::error(ErrorCode::invalid_argument,
                         std::string(option) + " " + std::string(value) + ": " + std::string(wanted));
}

template <typename T>
bool parse_number(std::string_view text, T* out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return error == std::errc{} && end == text.data() + text.size();
}

template <typename T>
bool parse_list(std::string_view text, std::vector<T>* out) {
    out->clear();
    for (;;) {
        const std::size_t comma = text.find(',');
        T value{};
        if (!parse_number(text.substr(0, comma), &value)) return false;
        out->push_back(value);
        if (comma == std::string_view::npos) return true;
        text.remove_prefix(comma + 1);
    }
}

Status set_option(std::string_view name, const std::string& value, Options* out) {
    const auto number = [&](auto* into) {
        return parse_number(value, into) ? Status::ok() : wrong(name, value, "not a number in range");
    };
    if (name == "--driver") return out->driver = value, Status::ok();
    if (name == "--fd") return number(&out->fd);
    if (name == "--status-fd") return number(&out->status_fd);
    if (name == "--usage-fd") return number(&out->usage_fd);
    if (name == "--usage-slot") return number(&out->usage_slot);
    if (name == "--cache-dir") return out->session.cache_directory = value, Status::ok();
    if (name == "--cache-bytes") return number(&out->session.cache_bytes);
    if (name == "--session-name") return out->session.name = value, Status::ok();
    if (name == "--devices")
        return parse_list(value, &out->session.devices) ? Status::ok()
                                                        : wrong(name, value, "not a list of device numbers");
    if (name == "--cap-bytes")
        return parse_list(value, &out->session.cap_bytes) ? Status::ok() : wrong(name, value, "not a list of sizes");
    if (name == "--replay") return out->mode = Options::Mode::replay, out->replay_file = value, Status::ok();
    if (name == "--path") {
        if (value != "shm" && value != "tcp") return wrong(name, value, "not shm or tcp");
        return out->path = value == "shm" ? transport::PathKind::shm : transport::PathKind::tcp, Status::ok();
    }
    return wrong(name, value, "no such option");
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> arguments) {
    Options out;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--probe") {
            out.mode = Options::Mode::probe;
            continue;
        }
        if (i + 1 == arguments.size()) return wrong(arguments[i], "", "needs a value");
        if (Status set = set_option(arguments[i], arguments[i + 1], &out); !set) return set;
        ++i;
    }
    if (out.driver.empty()) return wrong("--driver", "", "is needed");
    if (out.mode == Options::Mode::serve && out.fd < 0) return wrong("--fd", "", "is needed");
    // One cap stands for all devices; none at all means whole devices.
    auto& caps = out.session.cap_bytes;
    if (caps.size() > 1 && caps.size() != out.session.devices.size())
        return wrong("--cap-bytes", "", "one for each device, or one for all");
    return out;
}

}  // namespace weft::executor
