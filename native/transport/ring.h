// A byte ring with one writer and one reader, in memory that either of them may share with a stranger. Each end keeps
// its own position private and believes nothing that it reads: a position of the other end that cannot be is `broken`.
// The data is mapped twice in a row (Mapping::ring), so a frame is contiguous wherever it starts.
// docs/design/transport.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::transport {

inline constexpr std::size_t kCacheLineBytes = 64;

// Bytes written and bytes read since the start; the index is the position modulo the ring's size.
struct RingCursors {
    alignas(kCacheLineBytes) std::atomic<std::uint64_t> tail{0};
    alignas(kCacheLineBytes) std::atomic<std::uint64_t> head{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class RingWriter {
  public:
    RingWriter(RingCursors* cursors, std::byte* data, std::size_t size_bytes)
        : cursors_(cursors), data_(data), size_bytes_(size_bytes) {}

    std::byte* reserve(std::size_t size_bytes) {
        const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        if (size_bytes_ - (tail - head_seen_) < size_bytes && !find_room(tail, size_bytes)) return nullptr;
        return data_ + (tail & (size_bytes_ - 1));
    }
    void commit(std::size_t size_bytes) {
        const std::uint64_t tail = tail_.load(std::memory_order_relaxed) + size_bytes;
        tail_.store(tail, std::memory_order_relaxed);
        cursors_->tail.store(tail, std::memory_order_release);
    }
    std::uint64_t position() const { return tail_.load(std::memory_order_relaxed); }

    // Any thread: the room that the last reserve did not find is there now.
    bool room_came() const {
        const std::size_t wanted = wanted_.load(std::memory_order_relaxed);
        if (wanted == 0) return false;
        const std::uint64_t used =
            tail_.load(std::memory_order_relaxed) - cursors_->head.load(std::memory_order_acquire);
        return used > size_bytes_ || size_bytes_ - used >= wanted;
    }
    bool broken() const { return broken_.load(std::memory_order_relaxed); }

  private:
    bool find_room(std::uint64_t tail, std::size_t size_bytes) {
        const std::uint64_t head = cursors_->head.load(std::memory_order_acquire);
        if (head - head_seen_ > tail - head_seen_) {
            broken_.store(true, std::memory_order_relaxed);
            return false;
        }
        head_seen_ = head;
        const bool found = size_bytes_ - (tail - head) >= size_bytes;
        wanted_.store(found ? 0 : size_bytes, std::memory_order_relaxed);
        return found;
    }

    RingCursors* cursors_;
    std::byte* data_;
    std::size_t size_bytes_;
    std::atomic<std::uint64_t> tail_{0};
    std::uint64_t head_seen_ = 0;
    std::atomic<std::size_t> wanted_{0};
    std::atomic<bool> broken_{false};
};

class RingReader {
  public:
    RingReader(RingCursors* cursors, const std::byte* data, std::size_t size_bytes)
        : cursors_(cursors), data_(data), size_bytes_(size_bytes) {}

    // Bytes that can be read at data(); 0 too when the writer's position cannot be (broken).
    std::size_t available() {
        if (head_ == tail_seen_) {
            const std::uint64_t tail = cursors_->tail.load(std::memory_order_acquire);
            if (tail - head_ > size_bytes_ || tail % 8 != 0) {
                broken_ = true;
                return 0;
            }
            tail_seen_ = tail;
        }
        return tail_seen_ - head_;
    }
    bool something_came() const {
        return head_ != tail_seen_ || cursors_->tail.load(std::memory_order_acquire) != head_;
    }
    const std::byte* data() const { return data_ + (head_ & (size_bytes_ - 1)); }
    void consume(std::size_t size_bytes) { head_ += size_bytes; }

    // The writer may use what was consumed. Not done for each frame: the line of `head` would travel each time.
    bool publish_is_due() const { return head_ - published_ >= size_bytes_ / 8; }
    bool publish() {
        if (head_ == published_) return false;
        published_ = head_;
        cursors_->head.store(head_, std::memory_order_release);
        return true;
    }
    bool broken() const { return broken_; }

  private:
    RingCursors* cursors_;
    const std::byte* data_;
    std::size_t size_bytes_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_seen_ = 0;
    std::uint64_t published_ = 0;
    bool broken_ = false;
};

}  // namespace weft::transport
