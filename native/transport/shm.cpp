#include "transport/shm.h"

#include <poll.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace weft::transport {

namespace {

constexpr std::size_t kControlBytes = 4096;
constexpr std::size_t kMinRingBytes = 2 * wire::kMaxFrameBytes;
constexpr std::size_t kMaxRingBytes = 16u << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr auto kSocketLookInterval = std::chrono::milliseconds(20);

// Why a side sleeps; the other one wakes it only for these.
constexpr std::uint32_t kForFrames = 1;
constexpr std::uint32_t kForRoom = 2;

// Counters of one writer each: a plain add without a locked instruction.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

// Shared; everything in it may change at any time.
struct ShmControl {
    struct Direction {
        RingCursors cursors;
        alignas(kCacheLineBytes) std::atomic<std::uint64_t> returned_slots;
    };
    struct Side {
        alignas(kCacheLineBytes) std::atomic<std::uint32_t> asleep;
    };
    Direction directions[2];  // by the sending side
    Side sides[2];
};
static_assert(sizeof(ShmControl) <= kControlBytes);

bool ShmGeometry::valid() const {
    return std::has_single_bit(ring_bytes) && ring_bytes >= kMinRingBytes && ring_bytes <= kMaxRingBytes &&
           slot_count >= 1 && slot_count <= kMaxSlots && slot_bytes >= kPageBytes &&
           slot_bytes <= wire::kMaxPayloadBytes && slot_bytes % kPageBytes == 0;
}

std::size_t ShmGeometry::ring_offset(std::uint32_t direction) const { return kControlBytes + direction * ring_bytes; }

std::size_t ShmGeometry::slots_offset(std::uint32_t direction) const {
    return kControlBytes + 2 * ring_bytes + direction * slot_count * slot_bytes;
}

std::size_t ShmGeometry::file_bytes() const { return slots_offset(2); }

// --- making one ------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Channel>> ShmChannel::make(ShmSide side, const ShmGeometry& geometry, int file,
                                                  std::unique_ptr<LocalSocket> socket, const ChannelOptions& options) {
    Maps maps;
    auto keep = [](Result<Mapping> made, Mapping& into) {
        if (!made) return made.take_status();
        into = std::move(*made);
        return Status::ok();
    };
    if (Status s = keep(Mapping::shared(file, 0, kControlBytes), maps.control); !s) return s;
    for (std::uint32_t direction = 0; direction < 2; ++direction) {
        auto ring = Mapping::ring(file, geometry.ring_offset(direction), geometry.ring_bytes);
        if (Status s = keep(std::move(ring), maps.rings[direction]); !s) return s;
        auto slots = Mapping::shared(file, geometry.slots_offset(direction), geometry.slot_count * geometry.slot_bytes);
        if (Status s = keep(std::move(slots), maps.slots[direction]); !s) return s;
    }
    auto event = Notifier::make_event();
    if (!event) return event.take_status();
    return std::unique_ptr<Channel>(
        new ShmChannel(side, geometry, std::move(maps), std::move(socket), std::move(*event), options));
}

ShmChannel::ShmChannel(ShmSide side, const ShmGeometry& geometry, Maps maps, std::unique_ptr<LocalSocket> socket,
                       UniqueFd event, const ChannelOptions& options)
    : geometry_(geometry),
      mine_(static_cast<std::uint32_t>(side)),
      theirs_(1 - mine_),
      maps_(std::move(maps)),
      control_(reinterpret_cast<ShmControl*>(maps_.control.data())),
      socket_(std::move(socket)),
      notifier_(std::move(event)),
      spinner_(options.spin_time),
      liveness_timeout_(options.liveness_timeout),
      writer_(&control_->directions[mine_].cursors, maps_.rings[mine_].data(), geometry.ring_bytes),
      lender_(&control_->directions[mine_].returned_slots, geometry.slot_count),
      reader_(&control_->directions[theirs_].cursors, maps_.rings[theirs_].data(), geometry.ring_bytes),
      borrower_(&control_->directions[theirs_].returned_slots, geometry.slot_count),
      frame_(new std::byte[wire::kMaxFrameBytes]) {}

ShmChannel::~ShmChannel() = default;

// --- append role -----------------------------------------------------------------------------------------------------

std::byte* ShmChannel::reserve(std::size_t size_bytes) {
    std::byte* room = writer_.reserve(size_bytes);
    if (room == nullptr && writer_.broken()) (void)break_off("ring position of the peer cannot be");
    return room;
}

void ShmChannel::commit(std::size_t size_bytes) {
    add(frames_sent_, 1);
    add(bytes_sent_, size_bytes);
    writer_.commit(size_bytes);
}

Buffer ShmChannel::acquire_buffer() {
    const auto slot = lender_.acquire();
    if (!slot) return {};
    return {maps_.slots[mine_].data() + *slot * geometry_.slot_bytes, geometry_.slot_bytes, *slot};
}

void ShmChannel::discard_buffer(Buffer buffer) { lender_.discard(buffer.id); }

bool ShmChannel::send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) {
    std::byte* room = reserve(frame.size());
    if (room == nullptr) return false;
    std::memcpy(room, frame.data(), frame.size());
    auto* header = reinterpret_cast<wire::FrameHeader*>(room);
    header->payload_slot = buffer.id;
    header->payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    lender_.lend(buffer.id);
    add(bytes_sent_, payload_bytes);
    commit(frame.size());
    return true;
}

bool ShmChannel::send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                           std::size_t* progress_bytes) {
    if (reserve(frame.size()) == nullptr) return false;
    const Buffer buffer = acquire_buffer();
    if (!buffer) return false;
    std::memcpy(buffer.data, payload.data(), payload.size());
    *progress_bytes = frame.size() + payload.size();
    return send_buffer(frame, buffer, payload.size());
}

// --- flush role ------------------------------------------------------------------------------------------------------

Status ShmChannel::flush() {
    // Either we see that the peer announced its sleep, or its last look after the announcement sees what we committed.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wake_peer(kForFrames | kForRoom);
    return end_status();
}

void ShmChannel::wake_peer(std::uint32_t reasons) {
    std::atomic<std::uint32_t>& asleep = control_->sides[theirs_].asleep;
    if ((asleep.load(std::memory_order_relaxed) & reasons) == 0) return;
    if (asleep.exchange(0, std::memory_order_relaxed) != 0) socket_->send_bell();
}

// --- receive role ----------------------------------------------------------------------------------------------------

Result<Received> ShmChannel::poll() {
    // Before the ring is read: what a peer committed before it went must still be found.
    const bool ended = closed_.load(std::memory_order_relaxed) || socket_->ended();
    if (reader_.publish_is_due()) publish_consumed();
    const std::size_t available = reader_.available();
    if (available > 0 && broken_.load(std::memory_order_relaxed) == nullptr) return take_frame(available);
    if (reader_.broken()) return break_off("ring position of the peer cannot be");
    publish_consumed();
    if (ended || broken_.load(std::memory_order_relaxed) != nullptr) return end_status();
    return Received{};
}

Result<Received> ShmChannel::take_frame(std::size_t available) {
    // Read once: the peer may change it while we look. From here only our own copies count.
    const std::byte* at = reader_.data();
    std::uint32_t size_bytes =
        std::atomic_ref(*reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(at))).load(std::memory_order_relaxed);
    if (size_bytes < sizeof(wire::FrameHeader) || size_bytes > wire::kMaxFrameBytes || size_bytes % 8 != 0 ||
        size_bytes > available) {
        return break_off("frame size out of range");
    }
    std::memcpy(frame_.get(), at, size_bytes);
    auto* header = reinterpret_cast<wire::FrameHeader*>(frame_.get());
    header->size_bytes = size_bytes;
    reader_.consume(size_bytes);
    add(frames_received_, 1);
    add(bytes_received_, size_bytes);
    Received received;
    received.frame = {frame_.get(), size_bytes};
    if ((header->flags & wire::kFlagPayload) != 0) return attach_payload(received);
    if (header->payload_bytes != 0) return break_off("payload length without a payload");
    return received;
}

Result<Received> ShmChannel::attach_payload(Received received) {
    const auto* header = reinterpret_cast<const wire::FrameHeader*>(frame_.get());
    if (header->payload_bytes == 0 || header->payload_bytes > geometry_.slot_bytes) {
        return break_off("payload length out of range");
    }
    if (!borrower_.take(header->payload_slot)) return break_off("payload slot out of range or in use");
    std::byte* slot = maps_.slots[theirs_].data() + header->payload_slot * geometry_.slot_bytes;
    received.buffer = {slot, geometry_.slot_bytes, header->payload_slot};
    received.payload = {slot, header->payload_bytes};
    add(bytes_received_, header->payload_bytes);
    return received;
}

void ShmChannel::publish_consumed() {
    if (!reader_.publish()) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wake_peer(kForRoom);
}

void ShmChannel::release_buffer(Buffer buffer) {
    if (!borrower_.give_back(buffer.id)) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wake_peer(kForRoom);
}

bool ShmChannel::ready(bool writable) {
    return reader_.something_came() || notifier_.pending() ||
           (writable && (writer_.room_came() || lender_.slot_came()));
}

Status ShmChannel::wait(bool writable, Clock::time_point deadline) {
    publish_consumed();
    for (;;) {
        // A break is told even while frames are there; the end only when all were read.
        if (broken_.load(std::memory_order_relaxed) != nullptr || closed_.load(std::memory_order_relaxed))
            return end_status();
        const auto start = Clock::now();
        if (ready(writable) || spinner_.spin([&] { return ready(writable); }, deadline)) break;
        if (Status status = end_status(); !status) return status;
        if (Clock::now() >= deadline) break;
        if (Status status = sleep(writable, deadline); !status) return status;
        spinner_.learn(Clock::now() - start);
    }
    notifier_.consume();
    if (Clock::now() >= next_look_) return look_at_socket();
    return Status::ok();
}

Status ShmChannel::sleep(bool writable, Clock::time_point deadline) {
    std::atomic<std::uint32_t>& asleep = control_->sides[mine_].asleep;
    asleep.store(kForFrames | (writable ? kForRoom : 0), std::memory_order_relaxed);
    notifier_.begin_sleep();
    std::atomic_thread_fence(std::memory_order_seq_cst);  // the other half is in flush and publish_consumed
    pollfd looks[2] = {{socket_->fd(), POLLIN, 0}, {notifier_.fd(), POLLIN, 0}};
    if (!ready(writable)) {
        PollTimeout timeout(deadline);
        ::ppoll(looks, 2, timeout.get(), nullptr);
    }
    notifier_.end_sleep(looks[1].revents != 0);
    asleep.store(0, std::memory_order_relaxed);
    return looks[0].revents != 0 ? look_at_socket() : Status::ok();
}

// Takes bells and records off the socket and notices its end; also done now and then by a side that never sleeps.
Status ShmChannel::look_at_socket() {
    next_look_ = Clock::now() + kSocketLookInterval;
    if (Status status = socket_->drain(); !status) return break_off("bytes on the Unix socket that are no record");
    return Status::ok();
}

Status ShmChannel::end_status() const {
    if (const char* reason = broken_.load(std::memory_order_relaxed)) return Status::error(ErrorCode::protocol, reason);
    if (closed_.load(std::memory_order_relaxed)) return Status::error(ErrorCode::unavailable, "the channel is closed");
    if (socket_->ended()) return Status::error(ErrorCode::unavailable, "the peer closed the channel or died");
    return Status::ok();
}

Status ShmChannel::break_off(const char* reason) {
    const char* none = nullptr;
    broken_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
    return end_status();
}

// --- segments --------------------------------------------------------------------------------------------------------

Result<std::span<std::byte>> ShmChannel::create_segment(std::uint32_t segment, std::size_t size_bytes) {
    auto file = make_sealed_file("weft-segment", size_bytes);
    if (!file) return file.take_status();
    FileRecord record{};
    record.kind = kSegmentRecord;
    record.version = kRecordVersion;
    record.segment = segment;
    record.size_bytes = size_bytes;
    Status sent = socket_->send_file(record, file->get(), Clock::now() + liveness_timeout_);
    if (!sent) return sent;
    return keep_segment(segment, file->get(), size_bytes);
}

Result<std::span<std::byte>> ShmChannel::receive_segment(std::uint32_t segment, std::size_t size_bytes) {
    if (Status status = look_at_socket(); !status) return status;
    auto file = socket_->take_file(kSegmentRecord, segment);
    if (!file) return Status::error(ErrorCode::protocol, "no memory file was passed for this segment");
    if (Status status = check_sealed_file(file->fd.get(), size_bytes); !status) return status;
    return keep_segment(segment, file->fd.get(), size_bytes);
}

Result<std::span<std::byte>> ShmChannel::keep_segment(std::uint32_t segment, int file, std::size_t size_bytes) {
    auto mapping = Mapping::shared(file, 0, size_bytes);
    if (!mapping) return mapping.take_status();
    const std::span<std::byte> bytes = mapping->span();
    std::lock_guard guard(segments_lock_);
    if (!segments_.emplace(segment, std::move(*mapping)).second) {
        return Status::error(ErrorCode::protocol, "a segment of this number exists");
    }
    return bytes;
}

void ShmChannel::release_segment(std::uint32_t segment) {
    std::lock_guard guard(segments_lock_);
    segments_.erase(segment);
}

// --- the rest --------------------------------------------------------------------------------------------------------

Counters ShmChannel::counters() const {
    return {frames_sent_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            frames_received_.load(std::memory_order_relaxed), bytes_received_.load(std::memory_order_relaxed)};
}

void ShmChannel::close() {
    if (closed_.exchange(true, std::memory_order_relaxed)) return;
    socket_->shut_down();
    notifier_.notify();
}

void ShmChannel::abandon() {
    closed_.store(true, std::memory_order_relaxed);
    socket_->abandon();
    notifier_.abandon();
}

}  // namespace weft::transport
