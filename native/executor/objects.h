// What a session keeps of the client's contexts, streams, events and modules, by the client's numbers.
// Ownership: the session's tables own them; a context is the last to go. Design note: docs/design/executor.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/event_pool.h"
#include "executor/graphs.h"
#include "executor/in_flight.h"
#include "executor/parking.h"
#include "gen/cuda_abi.h"

namespace weft::executor {

struct ContextState;

struct StreamState {
    StreamState(ContextState& owner, std::uint32_t client_number, CUstream driver_stream, ParkingQueue::Role role,
                transport::Channel* channel);
    ContextState& context;
    std::uint32_t number;  // 0: the legacy default stream
    CUstream handle;
    ParkingQueue queue;
    InFlight in_flight;
    CreditCounter credit;
    std::unique_ptr<GraphRun> graph_run;  // the launch under way, if it did not go to the driver at once
    bool is_looked_at = false;            // in the session's list of streams to look at
    bool is_dying = false;                // destroyed by the client; kept until its buffers are free
};

struct EventState {
    ContextState* context = nullptr;
    std::uint32_t number = 0;
    unsigned flags = 0;
    EventRef handle;
    std::uint32_t record = 0;  // the client's count, of the newest record
    bool is_recorded = false;
};

struct FunctionState {
    CUfunction handle = nullptr;
    std::uint32_t parameter_bytes = 0;
    std::string name;
};

struct ModuleState {
    ContextState* context = nullptr;
    std::uint32_t number = 0;
    CUmodule handle = nullptr;
    std::vector<FunctionState> functions;
    std::uint64_t global_bytes = 0;
};

struct ArrayState {
    ContextState* context = nullptr;
    CUarray handle = nullptr;
    std::uint64_t bytes = 0;  // counted against the cap
};

struct ContextState {
    std::uint32_t number = 0;
    std::size_t device = 0;  // index in the lease
    CUcontext handle = nullptr;
    bool is_primary = false;
    CUresult creation = CUDA_SUCCESS;  // why there is no handle
    bool is_sticky_reported = false;
    CUstream output_stream = nullptr;  // always empty: its synchronisation makes the driver write what kernels printed
    std::shared_ptr<EventPool> events;
    LegacyGroup group;
    std::unique_ptr<StreamState> legacy;
    std::vector<StreamState*> streams;  // without the legacy one
    CUstream reader = nullptr;          // of our own, for what a synchronisation brings along; made on first use
};

inline StreamState::StreamState(ContextState& owner, std::uint32_t client_number, CUstream driver_stream,
                                ParkingQueue::Role role, transport::Channel* channel)
    : context(owner),
      number(client_number),
      handle(driver_stream),
      queue(role, role == ParkingQueue::Role::non_blocking ? nullptr : &owner.group),
      in_flight(owner.events, channel) {}

// Objects by number, with the one found last at hand: calls come in runs on the same object.
template <typename T>
class Table {
  public:
    T* find(std::uint32_t number) {
        if (last_ != nullptr && last_number_ == number) [[likely]]
            return last_;
        const auto found = objects_.find(number);
        if (found == objects_.end()) return nullptr;
        last_number_ = number;
        return last_ = found->second.get();
    }
    T* insert(std::uint32_t number, std::unique_ptr<T> object) { return (objects_[number] = std::move(object)).get(); }
    std::unique_ptr<T> remove(std::uint32_t number) {
        const auto found = objects_.find(number);
        if (found == objects_.end()) return nullptr;
        last_ = nullptr;
        std::unique_ptr<T> object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    template <typename Predicate>
    void remove_if(Predicate&& predicate) {
        last_ = nullptr;
        std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
    }
    std::size_t size() const { return objects_.size(); }
    auto begin() { return objects_.begin(); }
    auto end() { return objects_.end(); }

  private:
    std::unordered_map<std::uint32_t, std::unique_ptr<T>> objects_;
    T* last_ = nullptr;
    std::uint32_t last_number_ = 0;
};

}  // namespace weft::executor
