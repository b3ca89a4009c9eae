// What kernels print, on its way to the client. See session.h, output.h.
#include "base/log.h"
#include "executor/session.h"

namespace weft::executor {

// The context has kernels that print: from here on its synchronisations bring what they printed. An empty OUTPUT tells
// the client, which then waits before it destroys them.
void Session::start_output(ContextState& context) {
    if (!options_.captures_output || context.output_stream != nullptr) return;
    if (output_ == nullptr) output_ = CapturedOutput::start();
    if (output_ == nullptr) {
        log_event(LogLevel::warn, "output_not_captured", {{"session", options_.name}});
        options_.captures_output = false;
        return;
    }
    set_current(context);
    if (driver_.cuStreamCreate(&context.output_stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        context.output_stream = nullptr;
        return;
    }
    outbox_.send<wire::Output>(context.number, 0, {}, [](wire::Output& output) { output.kind = 1; });
}

void Session::collect_output(ContextState& context) {
    if (context.output_stream == nullptr) [[likely]]
        return;
    // Drivers write at synchronisations, which must not wait here: this stream has never anything to wait for.
    set_current(context);
    (void)driver_.cuStreamSynchronize(context.output_stream);
    output_->take([&](unsigned kind, std::string_view text) {
        outbox_.send<wire::Output>(context.number, 0, std::as_bytes(std::span(text)), [&](wire::Output& output) {
            output.kind = kind;
            output.size_bytes = static_cast<std::uint32_t>(text.size());
        });
    });
}

}  // namespace weft::executor
