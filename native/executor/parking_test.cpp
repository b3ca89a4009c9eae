// Order rules of parked frames: the single cases, and random streams of frames checked against the pairwise definition.
#include "executor/parking.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"

namespace weft::executor {
namespace {

using Role = ParkingQueue::Role;

struct Numbered : Parcel {
    explicit Numbered(int n) : number(n) {}
    int number;
};

FrameOrder work() { return {}; }
FrameOrder record(std::uint32_t event) { return {OrderKind::event_record, {event, kNoEvent}}; }
FrameOrder wait_for(std::uint32_t event) { return {OrderKind::event_wait, {event, kNoEvent}}; }
FrameOrder look(std::uint32_t a, std::uint32_t b = kNoEvent) { return {OrderKind::event_look, {a, b}}; }
FrameOrder barrier() { return {OrderKind::barrier, {kNoEvent, kNoEvent}}; }

// Parks what has to be parked and keeps the order in which frames were submitted.
struct Bench {
    Parking parking;
    LegacyGroup group;
    ParkingQueue legacy{Role::legacy, &group}, a{Role::blocking, &group}, b{Role::blocking, &group},
        free{Role::non_blocking, nullptr};
    std::vector<int> submitted;

    void arrive(ParkingQueue& queue, FrameOrder order, int number) {
        if (parking.must_park(queue, order)) {
            parking.park(queue, order, std::make_unique<Numbered>(number));
        } else {
            submitted.push_back(number);
        }
        EXPECT_TRUE(parking.check_invariants());
    }
    void pump() {
        parking.pump([&](ParkingQueue&, Parcel& parcel) {
            submitted.push_back(static_cast<Numbered&>(parcel).number);
            return Outcome::submitted;
        });
        EXPECT_TRUE(parking.check_invariants());
    }
    void open(ParkingQueue& queue) {
        parking.set_full(queue, false);
        pump();
    }
};

TEST(Parking, NothingIsParkedWhileStreamsHaveRoom) {
    Bench bench;
    bench.arrive(bench.a, work(), 1);
    bench.arrive(bench.legacy, work(), 2);
    bench.arrive(bench.parking.loose(), barrier(), 3);
    EXPECT_EQ(bench.submitted, (std::vector{1, 2, 3}));
    EXPECT_EQ(bench.parking.parked_count(), 0u);
}

TEST(Parking, FullStreamParksAndKeepsItsOrder) {
    Bench bench;
    bench.parking.set_full(bench.a, true);
    bench.arrive(bench.a, work(), 1);
    bench.arrive(bench.a, work(), 2);
    bench.arrive(bench.b, work(), 3);
    EXPECT_EQ(bench.submitted, (std::vector{3}));
    bench.open(bench.a);
    EXPECT_EQ(bench.submitted, (std::vector{3, 1, 2}));
}

TEST(Parking, LegacyStreamAndBlockingStreamsWaitForOneAnother) {
    Bench bench;
    bench.parking.set_full(bench.a, true);
    bench.arrive(bench.a, work(), 1);
    bench.arrive(bench.legacy, work(), 2);
    bench.arrive(bench.b, work(), 3);
    bench.arrive(bench.free, work(), 4);
    EXPECT_EQ(bench.submitted, (std::vector{4}));
    bench.open(bench.a);
    EXPECT_EQ(bench.submitted, (std::vector{4, 1, 2, 3}));
}

TEST(Parking, WaitForAParkedRecordIsParked) {
    Bench bench;
    bench.parking.set_full(bench.a, true);
    bench.arrive(bench.a, record(7), 1);
    bench.arrive(bench.b, wait_for(7), 2);
    bench.arrive(bench.b, work(), 3);
    bench.arrive(bench.parking.loose(), look(9, 7), 4);
    bench.arrive(bench.parking.loose(), look(9), 5);
    EXPECT_EQ(bench.submitted, (std::vector{5}));
    bench.open(bench.a);
    EXPECT_EQ(bench.submitted, (std::vector{5, 1, 2, 3, 4}));
}

TEST(Parking, RecordDoesNotOvertakeAParkedWaitForTheOldRecord) {
    Bench bench;
    bench.parking.set_full(bench.b, true);
    bench.arrive(bench.a, record(7), 1);
    bench.arrive(bench.b, wait_for(7), 2);
    bench.arrive(bench.a, record(7), 3);
    EXPECT_EQ(bench.submitted, (std::vector{1}));
    bench.open(bench.b);
    EXPECT_EQ(bench.submitted, (std::vector{1, 2, 3}));
}

TEST(Parking, BarrierGoesAfterEverythingBeforeItAndStopsNothingAfterIt) {
    Bench bench;
    bench.parking.set_full(bench.a, true);
    bench.arrive(bench.a, work(), 1);
    bench.arrive(bench.parking.loose(), barrier(), 2);
    bench.arrive(bench.b, work(), 3);
    bench.arrive(bench.parking.loose(), barrier(), 4);
    EXPECT_EQ(bench.submitted, (std::vector{3}));
    bench.open(bench.a);
    EXPECT_EQ(bench.submitted, (std::vector{3, 1, 2, 4}));
}

TEST(Parking, StartedFrameHoldsItsStreamUntilReleased) {
    Bench bench;
    bench.parking.park_started(bench.a, work());
    bench.arrive(bench.a, work(), 1);
    bench.arrive(bench.legacy, work(), 2);
    bench.pump();
    EXPECT_TRUE(bench.submitted.empty());
    bench.parking.release(bench.a);
    bench.pump();
    EXPECT_EQ(bench.submitted, (std::vector{1, 2}));
}

TEST(Parking, ClearedStreamNoLongerBlocksOthers) {
    Bench bench;
    bench.parking.set_full(bench.a, true);
    bench.arrive(bench.a, record(7), 1);
    bench.arrive(bench.b, wait_for(7), 2);
    bench.parking.clear(bench.a);
    bench.pump();
    EXPECT_EQ(bench.submitted, (std::vector{2}));
}

TEST(CreditCounter, TellsAfterABatchOfFramesOrBytes) {
    CreditCounter credit;
    for (std::uint32_t i = 1; i < CreditCounter::kFrameBatch; ++i) EXPECT_FALSE(credit.add(0));
    EXPECT_TRUE(credit.add(0));
    EXPECT_EQ(credit.frames(), CreditCounter::kFrameBatch);
    credit.reset();
    EXPECT_FALSE(credit.add(CreditCounter::kPayloadBatch - 1));
    EXPECT_TRUE(credit.add(1));
}

// ---------------------------------------------------------------------------------------------------- property test

struct Sent {
    int queue;  // index; -1: loose
    FrameOrder order;
};

bool shares_an_event(const FrameOrder& a, const FrameOrder& b) {
    for (const std::uint32_t x : a.events) {
        for (const std::uint32_t y : b.events) {
            if (x != kNoEvent && x == y) return true;
        }
    }
    return false;
}

// The definition: must `later` be submitted after `earlier`?
bool is_ordered(const Sent& earlier, const Sent& later, const std::vector<Role>& roles,
                const std::vector<int>& groups) {
    if (later.order.kind == OrderKind::barrier) return true;
    if (earlier.order.kind == OrderKind::barrier) return false;
    const bool records = earlier.order.kind == OrderKind::event_record || later.order.kind == OrderKind::event_record;
    if (records && shares_an_event(earlier.order, later.order)) return true;
    if (earlier.queue < 0 || later.queue < 0) return false;
    if (earlier.queue == later.queue) return true;
    const Role x = roles[earlier.queue], y = roles[later.queue];
    return groups[earlier.queue] == groups[later.queue] &&
           ((x == Role::legacy && y == Role::blocking) || (x == Role::blocking && y == Role::legacy));
}

class RandomFrames {
  public:
    explicit RandomFrames(std::uint64_t seed) : random_(seed) {
        for (int group = 0; group < 2; ++group) {
            add_queue(Role::legacy, group);
            add_queue(Role::blocking, group);
            add_queue(Role::blocking, group);
            add_queue(Role::non_blocking, group);
        }
    }

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
            ASSERT_TRUE(parking_.check_invariants());
        }
        drain();
        ASSERT_EQ(parking_.parked_count(), 0u);
        ASSERT_EQ(log_.size(), sent_.size()) << "every frame is submitted once";
        check_order();
    }

  private:
    void add_queue(Role role, int group) {
        roles_.push_back(role);
        group_of_.push_back(group);
        queues_.push_back(std::make_unique<ParkingQueue>(role, role == Role::non_blocking ? nullptr : &groups_[group]));
    }
    ParkingQueue& queue(int index) { return index < 0 ? parking_.loose() : *queues_[static_cast<std::size_t>(index)]; }

    FrameOrder random_order(int* index) {
        const auto event = [&] { return static_cast<std::uint32_t>(random_.below(4)); };
        *index = static_cast<int>(random_.below(queues_.size()));
        switch (random_.below(10)) {
            case 0: return record(event());
            case 1: return wait_for(event());
            case 2: *index = -1; return look(event(), event());
            case 3: *index = -1; return random_.below(3) == 0 ? barrier() : look(event());
            default: return work();
        }
    }

    void step() {
        switch (random_.below(8)) {
            case 0: parking_.set_full(queue(pick()), random_.below(3) == 0); break;
            case 1: release_one(pick()); break;
            case 2: pump(); break;
            default: arrive();
        }
    }
    int pick() { return static_cast<int>(random_.below(queues_.size())); }
    void release_one(int index) {
        if (queue(index).is_held()) parking_.release(queue(index));
    }
    void arrive() {
        int index = 0;
        const FrameOrder order = random_order(&index);
        const int number = static_cast<int>(sent_.size());
        sent_.push_back({index, order});
        if (parking_.must_park(queue(index), order)) {
            parking_.park(queue(index), order, std::make_unique<Numbered>(number));
        } else {
            log_.push_back(number);
            if (index >= 0 && order.kind == OrderKind::stream_work && random_.below(6) == 0)
                parking_.park_started(queue(index), order);
        }
    }
    void pump() {
        parking_.pump([&](ParkingQueue& from, Parcel& parcel) {
            const int number = static_cast<Numbered&>(parcel).number;
            log_.push_back(number);
            if (random_.below(10) == 0 && &from != &parking_.loose()) parking_.set_full(from, true);
            const bool plain = sent_[static_cast<std::size_t>(number)].order.kind == OrderKind::stream_work;
            return plain && random_.below(4) == 0 ? Outcome::started : Outcome::submitted;
        });
    }
    void drain() {
        for (int round = 0; round < 100000 && parking_.parked_count() != 0; ++round) {
            for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
                release_one(i);
                parking_.set_full(queue(i), false);
            }
            pump();
        }
    }
    void check_order() {
        std::vector<std::size_t> position(sent_.size());
        for (std::size_t i = 0; i < log_.size(); ++i) position[static_cast<std::size_t>(log_[i])] = i;
        for (std::size_t later = 0; later < sent_.size(); ++later) {
            for (std::size_t earlier = 0; earlier < later; ++earlier) {
                if (!is_ordered(sent_[earlier], sent_[later], roles_, group_of_)) continue;
                ASSERT_LT(position[earlier], position[later]) << "frame " << later << " overtook frame " << earlier;
            }
        }
    }

    Random random_;
    Parking parking_;
    LegacyGroup groups_[2];
    std::vector<Role> roles_;
    std::vector<int> group_of_;
    std::vector<std::unique_ptr<ParkingQueue>> queues_;
    std::vector<Sent> sent_;
    std::vector<int> log_;
};

TEST(ParkingProperty, RandomFramesAreAllSubmittedInAnAllowedOrder) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        RandomFrames frames(seed);
        frames.run(400);
        if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace weft::executor
