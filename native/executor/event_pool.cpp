// See event_pool.h. Must not wait for an event.
#include "executor/event_pool.h"

#include <utility>

namespace weft::executor {

CUevent EventPool::take(CUresult* error) {
    *error = CUDA_ERROR_INVALID_CONTEXT;
    if (closed_) return nullptr;
    if (!free_.empty()) {
        const CUevent event = free_.back();
        free_.pop_back();
        return event;
    }
    CUevent event = nullptr;
    *error = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    return *error == CUDA_SUCCESS ? event : nullptr;
}

void EventPool::give(CUevent event) {
    if (closed_) return;
    if (free_.size() < kKept) {
        free_.push_back(event);
    } else {
        driver_.cuEventDestroy_v2(event);
    }
}

void EventPool::close() {
    for (const CUevent event : free_) driver_.cuEventDestroy_v2(event);
    free_.clear();
    closed_ = true;
}

EventHandle::~EventHandle() {
    if (pool_->is_closed()) return;
    if (pooled_) {
        pool_->give(event_);
    } else {
        pool_->driver().cuEventDestroy_v2(event_);
    }
}

CUresult EventHandle::query() const {
    // With its context everything that was recorded has ended.
    return pool_->is_closed() ? CUDA_SUCCESS : pool_->driver().cuEventQuery(event_);
}

EventRef record_marker(const std::shared_ptr<EventPool>& pool, CUstream stream, CUresult* error) {
    const CUevent event = pool->take(error);
    if (event == nullptr) return nullptr;  // a context with a sticky error makes no events: *error is that one
    *error = pool->driver().cuEventRecord(event, stream);
    if (*error != CUDA_SUCCESS) {
        pool->give(event);
        return nullptr;
    }
    return std::make_shared<EventHandle>(event, true, pool);
}

}  // namespace weft::executor
