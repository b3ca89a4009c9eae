// Functions of the client that a stream waits for. See session.h.
#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

// The stream's frames wait from here on until the client has answered; nothing else does.
Outcome Session::on_host_function(Arrival& arrival) {
    const auto host = fields_of<wire::HostFunction>(arrival);
    if (host_calls_.contains(host.call)) return bad_frame(arrival, "host function number in use");
    StreamState& stream = *arrival.stream;
    host_calls_[host.call] = {&stream};
    if (is_idle_with_relations(stream)) {
        completion_.tell_implied();
        ask_for_host_call(host.call, CUDA_SUCCESS);
        return Outcome::started;
    }
    set_current(stream.context);
    CUresult result = CUDA_SUCCESS;
    EventRef marker = record_marker(stream.context.events, stream.handle, &result);
    if (marker == nullptr) {
        // The context has failed: a callback is told so.
        ask_for_host_call(host.call, result);
        return Outcome::started;
    }
    wake_at_end_of(stream);
    std::vector<EventRef> events;
    events.push_back(std::move(marker));
    completion_.add_wait(
        std::move(events), [this, call = host.call](CUresult status) { ask_for_host_call(call, status); },
        Clock::now());
    return Outcome::started;
}

void Session::ask_for_host_call(std::uint32_t call, CUresult status) {
    const auto found = host_calls_.find(call);
    if (found == host_calls_.end()) return;  // its context has ended
    found->second.is_asked = true;
    ContextState& context = found->second.stream->context;
    if (status != CUDA_SUCCESS) report(context, status, wire::HostFunction::kOpcode);
    collect_output(context);
    outbox_.send<wire::HostCall>(context.number, 0, {}, [&](wire::HostCall& frame) {
        frame.call = call;
        frame.status = static_cast<std::int32_t>(status);
    });
}

Outcome Session::on_host_done(Arrival& arrival) {
    const auto done = fields_of<wire::HostDone>(arrival);
    const auto found = host_calls_.find(done.call);
    if (found == host_calls_.end()) return Outcome::submitted;  // answered while its context was being destroyed
    if (!found->second.is_asked) return bad_frame(arrival, "the end of a host function that was not asked for");
    StreamState& stream = *found->second.stream;
    host_calls_.erase(found);
    release(stream);
    return Outcome::submitted;
}

}  // namespace weft::executor
