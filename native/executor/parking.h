// Decides the order in which frames may go to the driver: which one must wait (is parked), and which parked one may go
// next. Pure: knows no driver, no channel and no clock. The rules: docs/design/call-path.md, "Streams, parking and
// credit".
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace weft::executor {

// How a frame is ordered against others.
enum class OrderKind : std::uint8_t {
    stream_work,   // in its stream
    event_record,  // in its stream; gives events[0] a new meaning
    event_wait,    // in its stream; needs the meaning that events[0] has now
    event_look,    // in no stream; needs the meaning that the events have now
    barrier,       // in no stream; after everything that arrived before it
};

inline constexpr std::uint32_t kNoEvent = 0xffffffff;

struct FrameOrder {
    OrderKind kind = OrderKind::stream_work;
    std::array<std::uint32_t, 2> events{kNoEvent, kNoEvent};
    std::shared_ptr<const std::vector<std::uint32_t>> more{};  // further ones
};

// What the user of Parking keeps of a parked frame.
struct Parcel {
    virtual ~Parcel() = default;
};

class Parking;

// The blocking streams of one context and its legacy default stream wait for one another.
struct LegacyGroup {
    int parked_blocking = 0;     // blocking streams (not the legacy one) with parked frames
    bool parked_legacy = false;  // the legacy stream has parked frames
};

// The parked frames of one CUDA stream, or of all frames without a stream.
class ParkingQueue {
  public:
    enum class Role : std::uint8_t { blocking, non_blocking, legacy, loose };
    // The group outlives the queue; nullptr for non_blocking and loose.
    ParkingQueue(Role role, LegacyGroup* group) : role_(role), group_(group) {}
    ParkingQueue(const ParkingQueue&) = delete;
    ParkingQueue& operator=(const ParkingQueue&) = delete;

    Role role() const { return role_; }
    bool is_empty() const { return frames_.empty(); }
    std::size_t size() const { return frames_.size(); }
    bool is_full() const { return full_; }
    bool is_held() const { return held_; }

  private:
    friend class Parking;
    struct Frame {
        std::uint64_t sequence;
        FrameOrder order;
        std::unique_ptr<Parcel> parcel;
    };
    Role role_;
    LegacyGroup* group_;
    bool full_ = false;
    bool held_ = false;
    int position_ = -1;  // in Parking::active_
    std::deque<Frame> frames_;
};

// What became of a parked frame that was offered to the user.
enum class Outcome : std::uint8_t {
    submitted,  // it is with the driver
    started,    // it is being worked on; the queue is held until release()
};

class Parking {
  public:
    Parking();

    // True if a frame that arrives now has to be parked. The fast path of every launch.
    bool must_park(const ParkingQueue& queue, const FrameOrder& order) const {
        if (parked_count_ == 0) [[likely]]
            return queue.full_;
        return queue.full_ || (&queue != &loose_ && !queue.frames_.empty()) || is_blocked(queue, order, next_sequence_);
    }
    void park(ParkingQueue& queue, const FrameOrder& order, std::unique_ptr<Parcel> parcel);
    // Parks a frame that is being worked on already (it would have been allowed to go): later frames wait until
    // release().
    void park_started(ParkingQueue& queue, const FrameOrder& order);

    // The stream has as much work in the driver as is allowed / has room again.
    void set_full(ParkingQueue& queue, bool full);
    // The work on the frame at the head of a held queue is done; it leaves the queue.
    void release(ParkingQueue& queue);
    // Drops everything in the queue (its context ends).
    void clear(ParkingQueue& queue);

    // The queue of the frames without a stream.
    ParkingQueue& loose() { return loose_; }

    // True if something may have become free to go since the last pump.
    bool is_dirty() const { return dirty_; }
    // Offers parked frames that may go now to submit(queue, parcel) -> Outcome, until none is left.
    template <typename Submit>
    void pump(Submit&& submit) {
        while (dirty_) {
            dirty_ = false;
            for (std::size_t i = 0; i < active_.size();) {
                ParkingQueue* queue = active_[i];
                if (!offer_head(*queue, submit))
                    ++i;  // else look at the same place again: it may hold another queue now
            }
            offer_loose(submit);
        }
    }

    std::size_t parked_count() const { return parked_count_; }
    // Number of the last frame that was parked; for tests.
    std::uint64_t last_sequence() const { return next_sequence_ - 1; }
    bool check_invariants() const;

  private:
    struct Reference {
        std::uint64_t sequence;
        bool records;
    };

    template <typename Submit>
    bool offer_head(ParkingQueue& queue, Submit& submit) {
        if (!may_go(queue)) return false;
        if (submit(queue, *queue.frames_.front().parcel) == Outcome::started) {
            queue.held_ = true;
            return false;
        }
        remove_head(queue);
        return true;
    }
    template <typename Submit>
    void offer_loose(Submit& submit) {
        for (std::size_t i = 0; i < loose_.frames_.size();) {
            const ParkingQueue::Frame& frame = loose_.frames_[i];
            if (is_blocked(loose_, frame.order, frame.sequence)) {
                ++i;
                continue;
            }
            // Frames without a stream are never held: what they wait for is a matter of completion, not of order.
            std::unique_ptr<Parcel> parcel = remove_loose(i);
            submit(loose_, *parcel);
        }
    }

    void insert(ParkingQueue& queue, const FrameOrder& order, std::unique_ptr<Parcel> parcel);
    bool may_go(const ParkingQueue& queue) const;
    bool is_blocked(const ParkingQueue& queue, const FrameOrder& order, std::uint64_t sequence) const;
    bool is_blocked_by_legacy(const ParkingQueue& queue, std::uint64_t sequence) const;
    bool is_blocked_by_event(std::uint32_t event, bool records, std::uint64_t sequence) const;
    bool is_anything_parked_before(std::uint64_t sequence) const;
    void remove_head(ParkingQueue& queue);
    std::unique_ptr<Parcel> remove_loose(std::size_t index);
    void add_references(const FrameOrder& order, std::uint64_t sequence);
    void remove_references(const FrameOrder& order, std::uint64_t sequence);
    void activate(ParkingQueue& queue);
    void deactivate(ParkingQueue& queue);

    std::uint64_t next_sequence_ = 1;
    std::size_t parked_count_ = 0;
    bool dirty_ = false;
    std::vector<ParkingQueue*> active_;  // queues of streams with parked frames
    ParkingQueue loose_;
    std::unordered_map<std::uint32_t, std::vector<Reference>> references_;  // by event: parked frames that touch it
};

// Counts the frames and payload bytes of one stream that left the executor's hands, and says when to tell the client.
class CreditCounter {
  public:
    static constexpr std::uint32_t kFrameBatch = 256;
    static constexpr std::uint64_t kPayloadBatch = 1u << 20;

    // True when it is time to tell.
    bool add(std::uint32_t payload_bytes) {
        payload_bytes_ += payload_bytes;
        return ++frames_ >= kFrameBatch || payload_bytes_ >= kPayloadBatch;
    }
    std::uint32_t frames() const { return frames_; }
    std::uint64_t payload_bytes() const { return payload_bytes_; }
    void reset() {
        frames_ = 0;
        payload_bytes_ = 0;
    }

  private:
    std::uint32_t frames_ = 0;
    std::uint64_t payload_bytes_ = 0;
};

}  // namespace weft::executor
