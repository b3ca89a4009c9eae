// See completion.h.
#include "executor/completion.h"

#include <iterator>
#include <utility>

namespace weft::executor {

namespace {

// Moves the elements that satisfy `is_complete` to the result; both keep their order.
template <typename Element, typename Predicate>
std::vector<Element> take_if(std::vector<Element>& from, Predicate&& is_complete) {
    std::vector<Element> taken;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (is_complete(from[i])) {
            taken.push_back(std::move(from[i]));
        } else {
            if (kept != i) from[kept] = std::move(from[i]);
            ++kept;
        }
    }
    from.resize(kept);
    return taken;
}

}  // namespace

void Completion::add_data(EventRef event, Done done, Time now) {
    data_.push_back({std::move(event), std::move(done)});
    backoff_.start(now);
}

void Completion::add_watch(EventRef event, Done done, Time now) {
    watches_.push_back({std::move(event), std::move(done)});
    backoff_.start(now);
}

void Completion::add_wait(std::vector<EventRef> events, Done done, Time now) {
    waits_.push_back({std::move(events), CUDA_SUCCESS, std::move(done)});
    backoff_.start(now);
}

bool Completion::is_complete(Many& many) {
    while (!many.events.empty()) {
        const CUresult state = many.events.back()->query();
        if (state == CUDA_ERROR_NOT_READY) return false;
        if (state != CUDA_SUCCESS) many.status = state;
        many.events.pop_back();
    }
    return true;
}

void Completion::let_go() {
    for (Many& many : waits_) {
        std::erase_if(many.events, [&](const EventRef& event) {
            const CUresult state = event->query();
            if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) many.status = state;
            return state != CUDA_ERROR_NOT_READY;
        });
    }
}

bool Completion::tell_data() {
    struct Told {
        Done done;
        CUresult status;
    };
    // Pieces of one stream become complete in their order, so a piece after an incomplete one is not skipped wrongly:
    // the query of each decides.
    std::vector<Told> told;
    (void)take_if(data_, [&](One& piece) {
        const CUresult state = piece.event->query();
        if (state == CUDA_ERROR_NOT_READY) return false;
        told.push_back({std::move(piece.done), state});
        return true;
    });
    for (Told& one : told) one.done(one.status);
    return !told.empty();
}

bool Completion::tell_watches() {
    std::vector<std::pair<Done, CUresult>> told;
    (void)take_if(watches_, [&](One& watch) {
        const CUresult state = watch.event->query();
        if (state == CUDA_ERROR_NOT_READY) return false;
        told.emplace_back(std::move(watch.done), state);
        return true;
    });
    // A watch that is complete implies data that became complete before: those go first.
    bool any = tell_data();
    for (auto& [done, status] : told) done(status);
    return any || !told.empty();
}

void Completion::tell_implied() {
    if (data_.empty() && watches_.empty()) return;
    tell_watches();
}

void Completion::clear() {
    data_.clear();
    watches_.clear();
    waits_.clear();
}

bool Completion::look(Time now) {
    if (is_idle() || !backoff_.is_due(now)) return false;
    // First find the waits that are over, then tell what they imply, then tell them.
    std::vector<Many> over = take_if(waits_, is_complete);
    const bool told = tell_watches();
    for (Many& wait : over) wait.done(wait.status);
    if (!told && over.empty()) {
        backoff_.looked(now);
        return false;
    }
    return true;
}

}  // namespace weft::executor
