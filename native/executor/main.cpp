// weft-executor: one process for one client process. It lives as long as its server and its client. Design note:
// docs/design/executor.md.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "driver/load.h"
#include "executor/inventory.h"
#include "executor/options.h"
#include "executor/replay.h"
#include "executor/session.h"
#include "executor/status_line.h"
#include "transport/factory.h"

namespace weft::executor {
namespace {

constexpr int kExitUsage = 2, kExitFailed = 1;

int complain(const Status& status, int exit_status) {
    std::fprintf(stderr, "weft-executor: %s\n", status.text().c_str());
    return exit_status;
}

// A driver may print while it loads; what we print on stdout is read by a program.
int print(const Result<std::string>& text) {
    if (!text) return complain(text.status(), kExitFailed);
    std::printf("%s\n", text->c_str());
    return std::fflush(stdout) == 0 ? 0 : kExitFailed;
}

// The server may have died before this took effect.
bool bind_life_to_parent() {
    const pid_t parent = ::getppid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return ::getppid() == parent && parent != 1;
}

Result<std::unique_ptr<transport::Channel>> open_channel(const Options& options) {
    UniqueFd fd(options.fd);
    if (::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) return Status::from_errno("--fd", errno);
    if (options.path == transport::PathKind::shm) return transport::accept_shm(std::move(fd), {});
    return transport::open_tcp(std::move(fd), {});
}

int end(const Options& options, std::string_view reason, const Session* session, const transport::Channel* channel,
        int exit_status) {
    write_status(options.status_fd,
                 ended_line(reason, session, channel != nullptr ? channel->counters() : transport::Counters{}));
    // Straight to the end: what the session holds ends with the process, and a driver's threads may still run.
    std::fflush(nullptr);
    ::_exit(exit_status);
}

int serve(const Options& options, const driver::DriverTable& driver) {
    Result<std::unique_ptr<transport::Channel>> channel = open_channel(options);
    if (!channel)
        return end(options, channel.status().text(), nullptr, nullptr, complain(channel.status(), kExitFailed));
    Session session(**channel, driver, options.session);
    if (Status opened = session.open(); !opened)
        return end(options, opened.text(), nullptr, channel->get(), complain(opened, kExitFailed));
    write_status(options.status_fd, started_line(session));
    while (!session.is_over()) {
        if (!session.turn()) session.wait();
    }
    const EndReason& reason = session.end();
    log_event(LogLevel::info, "session_ended",
              {{"session", options.session.name}, {"kind", to_string(reason.kind)}, {"reason", reason.text}});
    const bool is_orderly = reason.kind == EndReason::Kind::goodbye || reason.kind == EndReason::Kind::client_gone;
    if (!is_orderly) (*channel)->close();
    return end(options, std::string(to_string(reason.kind)) + ": " + reason.text, &session, channel->get(),
               is_orderly ? 0 : kExitFailed);
}

int run(const std::vector<std::string>& arguments) {
    Result<Options> options = parse_options(arguments);
    if (!options) {
        std::fputs(kUsage, stderr);
        return complain(options.status(), kExitUsage);
    }
    options->session.version = WEFT_VERSION;
    options->session.captures_output = options->mode == Options::Mode::serve;
    std::unique_ptr<LeaseUsage> usage;
    if (options->usage_fd >= 0) {
        const UniqueFd page(options->usage_fd);
        Result<std::unique_ptr<LeaseUsage>> opened = LeaseUsage::open(page.get(), options->usage_slot);
        if (!opened) return complain(opened.status(), kExitUsage);
        usage = std::move(*opened);
        options->session.usage = usage.get();
    }
    if (options->status_fd >= 0) ::fcntl(options->status_fd, F_SETFD, FD_CLOEXEC);
    if (options->mode == Options::Mode::serve && !bind_life_to_parent()) return kExitFailed;
    static driver::DriverTable driver;
    if (Status loaded = driver::load_driver_table(options->driver.c_str(), &driver); !loaded) {
        if (options->mode == Options::Mode::serve)
            return end(*options, loaded.text(), nullptr, nullptr, complain(loaded, kExitFailed));
        return complain(loaded, kExitFailed);
    }
    switch (options->mode) {
        case Options::Mode::probe: return print(probe(driver));
        case Options::Mode::replay: return print(replay(options->replay_file, driver, options->session));
        case Options::Mode::serve: return serve(*options, driver);
    }
    return kExitFailed;
}

}  // namespace
}  // namespace weft::executor

int main(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    return weft::executor::run(std::vector<std::string>(argv + 1, argv + argc));
}
