// The Unix stream socket beside a shm channel: bells (one byte: "look again"), and records that carry a memory file.
// Its end is the peer's end. It must not block except in the functions that take a deadline. docs/design/transport.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace weft::transport {

// A record that travels with one memory file. All numbers are checked by the receiver.
struct FileRecord {
    std::uint8_t kind;  // kSegmentRecord or kRingsRecord
    std::uint8_t version;
    std::uint16_t slot_count;  // rings
    std::uint32_t segment;     // segments: the client's number
    std::uint64_t size_bytes;  // of the file
    std::uint32_t ring_bytes;  // rings
    std::uint32_t slot_bytes;  // rings
};
static_assert(sizeof(FileRecord) == 24);

inline constexpr std::uint8_t kBell = 0xb1;
inline constexpr std::uint8_t kSegmentRecord = 0x5e;
inline constexpr std::uint8_t kRingsRecord = 0x51;
inline constexpr std::uint8_t kRecordVersion = 1;

struct ReceivedFile {
    FileRecord record;
    UniqueFd fd;
};

class LocalSocket {
  public:
    explicit LocalSocket(UniqueFd socket) : fd_(std::move(socket)) {}

    int fd() const { return fd_.get(); }
    // Wakes the peer. A full socket is as good: the peer has not read its earlier bells.
    void send_bell();
    Status send_file(const FileRecord& record, int file, Clock::time_point deadline);
    // Reads what is there. False when the stream broke the rules (the text says how).
    Status drain();
    // The peer closed its end, or died.
    bool ended() const { return ended_.load(std::memory_order_acquire); }
    // A file that drain() found; waits for none.
    std::optional<ReceivedFile> take_file(std::uint8_t kind, std::uint32_t segment);
    // As take_file, but waits for it.
    Result<ReceivedFile> await_file(std::uint8_t kind, std::uint32_t segment, Clock::time_point deadline);
    void shut_down();
    void abandon() { fd_.reset(); }

  private:
    bool read_some(Status* status);
    Status parse(const std::byte* data, std::size_t size_bytes);
    Status keep_record();

    UniqueFd fd_;
    std::atomic<bool> ended_{false};
    std::mutex lock_;  // all below
    std::byte partial_[sizeof(FileRecord)] = {};
    std::size_t partial_bytes_ = 0;
    UniqueFd passed_;  // came with the record that is being read
    std::map<std::uint64_t, ReceivedFile> files_;
};

// Refuses what a hostile client could pull away under us: only a sealed, swappable memory file of this size passes.
Status check_sealed_file(int fd, std::size_t size_bytes);
// Makes such a file.
Result<UniqueFd> make_sealed_file(const char* label, std::size_t size_bytes);

}  // namespace weft::transport
