// A channel over shared memory between two processes of one host: a ring of frames and payload slots per direction, and
// a Unix socket for wake-ups, passed memory files and the peer's death. It must not trust a byte of the shared memory:
// frames are copied out before they are checked, positions and slot numbers are checked against private ones.
// docs/design/transport.md.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/mapping.h"
#include "transport/channel.h"
#include "transport/local_socket.h"
#include "transport/options.h"
#include "transport/ring.h"
#include "transport/slots.h"
#include "transport/waiting.h"

namespace weft::transport {

enum class ShmSide : std::uint32_t { client = 0, executor = 1 };

// Sizes of the shared file, agreed on before it is used.
struct ShmGeometry {
    std::size_t ring_bytes;
    std::uint32_t slot_count;
    std::size_t slot_bytes;

    bool valid() const;
    std::size_t ring_offset(std::uint32_t direction) const;
    std::size_t slots_offset(std::uint32_t direction) const;
    std::size_t file_bytes() const;
};

struct ShmControl;

class ShmChannel final : public Channel {
  public:
    static Result<std::unique_ptr<Channel>> make(ShmSide side, const ShmGeometry& geometry, int file,
                                                 std::unique_ptr<LocalSocket> socket, const ChannelOptions& options);
    ~ShmChannel() override;

    PathKind kind() const override { return PathKind::shm; }
    void set_placer(Placer) override {}

    std::byte* reserve(std::size_t size_bytes) override;
    void commit(std::size_t size_bytes) override;
    Buffer acquire_buffer() override;
    void discard_buffer(Buffer buffer) override;
    bool send_buffer(std::span<const std::byte> frame, Buffer buffer, std::size_t payload_bytes) override;
    bool send_from(std::span<const std::byte> frame, std::span<const std::byte> payload,
                   std::size_t* progress_bytes) override;
    std::size_t payload_piece_bytes() const override { return geometry_.slot_bytes; }

    Status flush() override;
    bool has_unsent() const override { return false; }

    Result<Received> poll() override;
    void release_buffer(Buffer buffer) override;
    Status wait(bool writable, Clock::time_point deadline) override;
    void notify() override { notifier_.notify(); }

    Result<std::span<std::byte>> create_segment(std::uint32_t segment, std::size_t size_bytes) override;
    Result<std::span<std::byte>> receive_segment(std::uint32_t segment, std::size_t size_bytes) override;
    void release_segment(std::uint32_t segment) override;

    Counters counters() const override;
    void close() override;
    void abandon() override;

  private:
    struct Maps {
        Mapping control, rings[2], slots[2];
    };
    ShmChannel(ShmSide side, const ShmGeometry& geometry, Maps maps, std::unique_ptr<LocalSocket> socket,
               UniqueFd event, const ChannelOptions& options);

    Result<Received> take_frame(std::size_t available);
    Result<Received> attach_payload(Received received);
    void publish_consumed();
    void wake_peer(std::uint32_t reasons);
    bool ready(bool writable);
    Status sleep(bool writable, Clock::time_point deadline);
    Status look_at_socket();
    Status end_status() const;
    Status break_off(const char* reason);
    Result<std::span<std::byte>> keep_segment(std::uint32_t segment, int file, std::size_t size_bytes);

    const ShmGeometry geometry_;
    const std::uint32_t mine_;  // index of this side and of the direction it sends in
    const std::uint32_t theirs_;
    Maps maps_;
    ShmControl* control_;
    std::unique_ptr<LocalSocket> socket_;
    Notifier notifier_;
    Spinner spinner_;
    const std::chrono::milliseconds liveness_timeout_;

    RingWriter writer_;
    SlotLender lender_;
    RingReader reader_;
    SlotBorrower borrower_;
    std::unique_ptr<std::byte[]> frame_;  // the private copy that poll hands out
    Clock::time_point next_look_{};
    std::atomic<const char*> broken_{nullptr};
    std::atomic<bool> closed_{false};

    std::mutex segments_lock_;
    std::map<std::uint32_t, Mapping> segments_;

    std::atomic<std::uint64_t> frames_sent_{0}, bytes_sent_{0}, frames_received_{0}, bytes_received_{0};
};

}  // namespace weft::transport
