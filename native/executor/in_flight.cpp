// See in_flight.h.
#include "executor/in_flight.h"

#include <utility>

namespace weft::executor {

InFlight::~InFlight() { all_complete(); }

CUresult InFlight::place_marker(CUstream stream) {
    CUresult error = CUDA_SUCCESS;
    EventRef event = record_marker(pool_, stream, &error);
    // Without a marker the work stays counted; the next one covers it.
    if (event == nullptr) return error;
    held_ += kept_.size();
    markers_.push_back({std::move(event), unmarked_, std::move(kept_)});
    kept_.clear();
    unmarked_ = 0;
    return CUDA_SUCCESS;
}

CUresult InFlight::look() {
    CUresult error = CUDA_SUCCESS;
    while (!markers_.empty()) {
        const CUresult state = markers_.front().event->query();
        if (state == CUDA_ERROR_NOT_READY) break;
        if (state != CUDA_SUCCESS) error = state;
        finish_front();
    }
    return error;
}

void InFlight::finish_front() {
    Marker& marker = markers_.front();
    outstanding_ -= marker.operations;
    held_ -= marker.kept.size();
    give_back(marker.kept);
    markers_.pop_front();
}

void InFlight::all_complete() {
    while (!markers_.empty()) finish_front();
    give_back(kept_);
    outstanding_ = unmarked_ = 0;
}

void InFlight::give_back(std::vector<Kept>& kept) {
    for (Kept& piece : kept) {
        if (piece.buffer) channel_->release_buffer(piece.buffer);
    }
    kept.clear();
}

}  // namespace weft::executor
