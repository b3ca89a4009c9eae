// How much work of one CUDA stream the driver has and is not known to have finished: a marker event after each
// kMarkerInterval operations, and what is given back when a marker is complete. Must not block. Design note:
// docs/design/executor.md.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "executor/event_pool.h"
#include "transport/channel.h"

namespace weft::executor {

class InFlight {
  public:
    static constexpr std::uint32_t kMarkerInterval = 128;
    // NVIDIA's launch queue blocks the caller at about a thousand entries.
    static constexpr std::uint32_t kMaxOutstanding = 768;

    InFlight(std::shared_ptr<EventPool> pool, transport::Channel* channel)
        : pool_(std::move(pool)), channel_(channel) {}
    ~InFlight();
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

    // Counts operations just given to the driver; true when a marker is due (call place_marker).
    bool add(std::uint32_t operations) {
        outstanding_ += operations;
        unmarked_ += operations;
        return unmarked_ >= kMarkerInterval;
    }
    // The buffer is free when the work given to the driver so far is complete.
    void keep(transport::Buffer buffer) { kept_.push_back({buffer, nullptr}); }
    void keep(std::shared_ptr<void> memory) { kept_.push_back({{}, std::move(memory)}); }

    // Marks the end of the work so far. An error is one of the context.
    CUresult place_marker(CUstream stream);
    // Looks which markers are complete and gives back what they held. An error is one of the context; its markers count
    // as complete.
    CUresult look();

    // The driver said that everything is complete (cuStreamQuery).
    void all_complete();

    std::uint32_t outstanding() const { return outstanding_; }
    std::uint32_t unmarked() const { return unmarked_; }
    bool is_full() const { return outstanding_ > kMaxOutstanding; }
    // Something is to be given back as soon as possible, so somebody has to look.
    bool holds_memory() const { return held_ != 0 || !kept_.empty(); }
    bool has_markers() const { return !markers_.empty(); }
    // Covers all work that was marked; nullptr if there is none.
    EventRef last_marker() const { return markers_.empty() ? nullptr : markers_.back().event; }

  private:
    struct Kept {
        transport::Buffer buffer;
        std::shared_ptr<void> memory;
    };
    struct Marker {
        EventRef event;
        std::uint32_t operations;
        std::vector<Kept> kept;
    };
    void finish_front();
    void give_back(std::vector<Kept>& kept);

    std::shared_ptr<EventPool> pool_;
    transport::Channel* channel_;
    std::uint32_t outstanding_ = 0;
    std::uint32_t unmarked_ = 0;
    std::size_t held_ = 0;  // pieces of memory held by markers
    std::vector<Kept> kept_;
    std::deque<Marker> markers_;
};

}  // namespace weft::executor
