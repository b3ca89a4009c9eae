// CUDA events for the executor's own use, per context, and counted references to events of the client.
// The context must be current on the calling thread. Design note: docs/design/executor.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gen/driver_table.h"

namespace weft::executor {

// Where an event goes when nobody needs it any more. Outlives its context: after close() nothing reaches the driver.
class EventPool {
  public:
    explicit EventPool(const driver::DriverTable& driver) : driver_(driver) {}
    // nullptr when the driver has none left.
    // nullptr: *error says why (a context with a sticky error makes no events).
    CUevent take(CUresult* error);
    void give(CUevent event);
    // The context is about to be destroyed; its events end with it.
    void close();
    bool is_closed() const { return closed_; }
    const driver::DriverTable& driver() const { return driver_; }

  private:
    static constexpr std::size_t kKept = 256;
    const driver::DriverTable& driver_;
    std::vector<CUevent> free_;
    bool closed_ = false;
};

// One driver event with a counted owner: a pending wait keeps the event it waits for, even if the client records or
// destroys its own meanwhile.
class EventHandle {
  public:
    // pooled: given back to the pool at the end, else destroyed.
    EventHandle(CUevent event, bool pooled, std::shared_ptr<EventPool> pool)
        : event_(event), pooled_(pooled), pool_(std::move(pool)) {}
    EventHandle(const EventHandle&) = delete;
    EventHandle& operator=(const EventHandle&) = delete;
    ~EventHandle();

    CUevent get() const { return event_; }
    // CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or why it will never be complete.
    CUresult query() const;

  private:
    CUevent event_;
    bool pooled_;
    std::shared_ptr<EventPool> pool_;
};
using EventRef = std::shared_ptr<EventHandle>;

// A pooled event recorded in the stream; nullptr (and *error set) when the driver refuses.
EventRef record_marker(const std::shared_ptr<EventPool>& pool, CUstream stream, CUresult* error);

}  // namespace weft::executor
