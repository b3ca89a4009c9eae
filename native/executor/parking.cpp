// The rules of order between parked frames. See parking.h; must stay free of driver and channel.
// Design note: docs/design/executor.md.
#include "executor/parking.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weft::executor {

Parking::Parking() : loose_(ParkingQueue::Role::loose, nullptr) {}

void Parking::park(ParkingQueue& queue, const FrameOrder& order, std::unique_ptr<Parcel> parcel) {
    insert(queue, order, std::move(parcel));
}

void Parking::park_started(ParkingQueue& queue, const FrameOrder& order) {
    assert(queue.frames_.empty());
    insert(queue, order, nullptr);
    queue.held_ = true;
}

void Parking::insert(ParkingQueue& queue, const FrameOrder& order, std::unique_ptr<Parcel> parcel) {
    const std::uint64_t sequence = next_sequence_++;
    queue.frames_.push_back({sequence, order, std::move(parcel)});
    ++parked_count_;
    add_references(order, sequence);
    if (&queue != &loose_ && queue.position_ < 0) activate(queue);
}

void Parking::set_full(ParkingQueue& queue, bool full) {
    if (queue.full_ && !full && !queue.frames_.empty()) dirty_ = true;
    queue.full_ = full;
}

void Parking::release(ParkingQueue& queue) {
    assert(queue.held_ && !queue.frames_.empty());
    queue.held_ = false;
    remove_head(queue);
}

void Parking::clear(ParkingQueue& queue) {
    queue.held_ = false;
    for (const auto& frame : queue.frames_) remove_references(frame.order, frame.sequence);
    parked_count_ -= queue.frames_.size();
    queue.frames_.clear();
    if (queue.position_ >= 0) deactivate(queue);
    dirty_ = true;
}

bool Parking::may_go(const ParkingQueue& queue) const {
    if (queue.held_ || queue.full_) return false;
    const ParkingQueue::Frame& head = queue.frames_.front();
    return !is_blocked(queue, head.order, head.sequence);
}

bool Parking::is_blocked(const ParkingQueue& queue, const FrameOrder& order, std::uint64_t sequence) const {
    if (order.kind == OrderKind::barrier) return is_anything_parked_before(sequence);
    if (is_blocked_by_legacy(queue, sequence)) return true;
    if (references_.empty()) return false;
    const bool records = order.kind == OrderKind::event_record;
    const auto blocks = [&](std::uint32_t event) { return is_blocked_by_event(event, records, sequence); };
    if (std::any_of(order.events.begin(), order.events.end(), blocks)) return true;
    return order.more != nullptr && std::any_of(order.more->begin(), order.more->end(), blocks);
}

bool Parking::is_blocked_by_legacy(const ParkingQueue& queue, std::uint64_t sequence) const {
    using Role = ParkingQueue::Role;
    Role other;
    if (queue.role_ == Role::legacy && queue.group_->parked_blocking > 0) {
        other = Role::blocking;
    } else if (queue.role_ == Role::blocking && queue.group_->parked_legacy) {
        other = Role::legacy;
    } else {
        return false;
    }
    return std::any_of(active_.begin(), active_.end(), [&](const ParkingQueue* candidate) {
        return candidate->group_ == queue.group_ && candidate->role_ == other &&
               candidate->frames_.front().sequence < sequence;
    });
}

bool Parking::is_blocked_by_event(std::uint32_t event, bool records, std::uint64_t sequence) const {
    if (event == kNoEvent) return false;
    const auto found = references_.find(event);
    if (found == references_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Reference& reference) {
        return reference.sequence < sequence && (records || reference.records);
    });
}

bool Parking::is_anything_parked_before(std::uint64_t sequence) const {
    if (!loose_.frames_.empty() && loose_.frames_.front().sequence < sequence) return true;
    return std::any_of(active_.begin(), active_.end(),
                       [&](const ParkingQueue* candidate) { return candidate->frames_.front().sequence < sequence; });
}

void Parking::remove_head(ParkingQueue& queue) {
    const ParkingQueue::Frame& head = queue.frames_.front();
    remove_references(head.order, head.sequence);
    queue.frames_.pop_front();
    --parked_count_;
    if (queue.frames_.empty()) deactivate(queue);
    dirty_ = true;
}

std::unique_ptr<Parcel> Parking::remove_loose(std::size_t index) {
    const auto at = loose_.frames_.begin() + static_cast<std::ptrdiff_t>(index);
    remove_references(at->order, at->sequence);
    std::unique_ptr<Parcel> parcel = std::move(at->parcel);
    loose_.frames_.erase(at);
    --parked_count_;
    dirty_ = true;
    return parcel;
}

void Parking::add_references(const FrameOrder& order, std::uint64_t sequence) {
    const auto add = [&](std::uint32_t event) {
        if (event != kNoEvent) references_[event].push_back({sequence, order.kind == OrderKind::event_record});
    };
    std::for_each(order.events.begin(), order.events.end(), add);
    if (order.more != nullptr) std::for_each(order.more->begin(), order.more->end(), add);
}

void Parking::remove_references(const FrameOrder& order, std::uint64_t sequence) {
    const auto remove = [&](std::uint32_t event) {
        const auto found = references_.find(event);
        if (event == kNoEvent || found == references_.end()) return;
        std::erase_if(found->second, [&](const Reference& reference) { return reference.sequence == sequence; });
        if (found->second.empty()) references_.erase(found);
    };
    std::for_each(order.events.begin(), order.events.end(), remove);
    if (order.more != nullptr) std::for_each(order.more->begin(), order.more->end(), remove);
}

void Parking::activate(ParkingQueue& queue) {
    queue.position_ = static_cast<int>(active_.size());
    active_.push_back(&queue);
    if (queue.role_ == ParkingQueue::Role::blocking) ++queue.group_->parked_blocking;
    if (queue.role_ == ParkingQueue::Role::legacy) queue.group_->parked_legacy = true;
}

void Parking::deactivate(ParkingQueue& queue) {
    ParkingQueue* last = active_.back();
    active_[static_cast<std::size_t>(queue.position_)] = last;
    last->position_ = queue.position_;
    active_.pop_back();
    queue.position_ = -1;
    if (queue.role_ == ParkingQueue::Role::blocking) --queue.group_->parked_blocking;
    if (queue.role_ == ParkingQueue::Role::legacy) queue.group_->parked_legacy = false;
}

bool Parking::check_invariants() const {
    std::size_t count = loose_.frames_.size();
    std::size_t references = 0, allowed = 0;
    for (std::size_t i = 0; i < active_.size(); ++i) {
        const ParkingQueue& queue = *active_[i];
        if (queue.position_ != static_cast<int>(i) || queue.frames_.empty()) return false;
        const auto by_sequence = [](const auto& a, const auto& b) { return a.sequence < b.sequence; };
        if (!std::is_sorted(queue.frames_.begin(), queue.frames_.end(), by_sequence)) return false;
        count += queue.frames_.size();
    }
    for (const auto& [event, list] : references_) references += list.size();
    const auto allow = [&](const ParkingQueue& queue) {
        for (const ParkingQueue::Frame& frame : queue.frames_)
            allowed += frame.order.events.size() + (frame.order.more != nullptr ? frame.order.more->size() : 0);
    };
    allow(loose_);
    for (const ParkingQueue* queue : active_) allow(*queue);
    return count == parked_count_ && references <= allowed;
}

}  // namespace weft::executor
