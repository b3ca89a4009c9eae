// See replay.h. The frames are those of a client that was answered in time, so the player does what that client did: it
// sends a waiting frame only when the one before it was answered, and the bytes of a pull when it is asked for them.
#include "executor/replay.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mapping.h"
#include "base/sha256.h"
#include "executor/inventory.h"
#include "executor/memory_channel.h"
#include "wire/recording.h"

namespace weft::executor {

namespace {

constexpr std::size_t kMaxAhead =
    1024;  // frames handed to the session and not with the driver yet: less than a client's credit

// One recorded frame; views into the file.
struct Recorded {
    wire::FrameHeader header;
    std::span<const std::byte> frame, payload;
};

class Recording {
  public:
    static Result<Recording> open(const std::string& path);
    // False at the end, and when the rest is cut off.
    bool next(Recorded* out);
    bool is_cut_off() const { return is_cut_off_; }

  private:
    std::vector<std::byte> bytes_;
    std::size_t at_ = sizeof(wire::RecordingHeader);
    bool is_cut_off_ = false;
};

Result<Recording> Recording::open(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info;
    if (!fd || ::fstat(fd.get(), &info) != 0) return Status::from_errno("open " + path, errno);
    Recording out;
    out.bytes_.resize(static_cast<std::size_t>(info.st_size));
    std::size_t done = 0;
    while (done < out.bytes_.size()) {
        const ssize_t got = ::read(fd.get(), out.bytes_.data() + done, out.bytes_.size() - done);
        if (got <= 0) return Status::from_errno("read " + path, errno);
        done += static_cast<std::size_t>(got);
    }
    wire::RecordingHeader header;
    if (out.bytes_.size() < sizeof header)
        return Status::error(ErrorCode::invalid_argument, path + " is not a recording");
    std::memcpy(&header, out.bytes_.data(), sizeof header);
    if (header.magic != wire::kRecordingMagic)
        return Status::error(ErrorCode::invalid_argument, path + " is not a recording");
    if (header.protocol < wire::kProtocolOldest || header.protocol > wire::kProtocolVersion) {
        return Status::error(ErrorCode::version,
                             path + " was recorded with protocol " + std::to_string(header.protocol));
    }
    return out;
}

bool Recording::next(Recorded* out) {
    if (at_ == bytes_.size()) return false;
    wire::RecordingEntry entry;
    is_cut_off_ = bytes_.size() - at_ < sizeof entry;
    if (is_cut_off_) return false;
    std::memcpy(&entry, bytes_.data() + at_, sizeof entry);
    const std::size_t left = bytes_.size() - at_ - sizeof entry;
    is_cut_off_ = entry.frame_bytes < sizeof(wire::FrameHeader) || entry.frame_bytes > left ||
                  entry.payload_bytes > left - entry.frame_bytes;
    if (is_cut_off_) return false;
    out->frame = std::span(bytes_).subspan(at_ + sizeof entry, entry.frame_bytes);
    out->payload = std::span(bytes_).subspan(at_ + sizeof entry + entry.frame_bytes, entry.payload_bytes);
    out->header = wire::header_of(out->frame);
    at_ += sizeof entry + entry.frame_bytes + entry.payload_bytes;
    return true;
}

class Player {
  public:
    Player(Recording recording, const driver::DriverTable& driver, SessionOptions options)
        : recording_(std::move(recording)),
          channel_([this](auto frame, auto payload) { receive(frame, payload); }),
          session_(channel_, driver, std::move(options)) {}

    Result<std::string> run() {
        if (Status opened = session_.open(); !opened) return opened;
        const auto start = Clock::now();
        while (!session_.is_over()) {
            const bool fed = feed();
            if (!session_.turn() && !fed) session_.wait();
            if (is_fed_ && channel_.waiting() == 0 && pending_.empty()) break;
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        return report(seconds);
    }

  private:
    bool feed() {
        bool any = false;
        while (!is_fed_ && pending_.empty() && channel_.waiting() + session_.parked_frames() < kMaxAhead) {
            Recorded next;
            if (has_held_) {
                next = held_;
            } else if (!recording_.next(&next)) {
                finish();
                return true;
            }
            has_held_ = false;
            if (!may_send(next)) {
                held_ = next;
                has_held_ = true;
                return any;
            }
            send(next);
            any = true;
        }
        return any;
    }
    bool may_send(const Recorded& next) const {
        if (next.header.opcode != wire::PullData::kOpcode) return true;
        wire::PullData data;
        if (next.frame.size() < sizeof(wire::FrameHeader) + sizeof data) return true;
        std::memcpy(&data, next.frame.data() + sizeof(wire::FrameHeader), sizeof data);
        return pulls_.contains(data.pull);
    }
    void send(const Recorded& next) {
        std::vector<std::byte> frame(next.frame.begin(), next.frame.end());
        // Segments of page-locked memory are not in the recording: what is read from them is zeros.
        if (next.header.opcode == wire::SegmentOpen::kOpcode &&
            frame.size() >= sizeof(wire::FrameHeader) + sizeof(wire::SegmentOpen)) {
            wire::SegmentOpen open;
            std::memcpy(&open, frame.data() + sizeof(wire::FrameHeader), sizeof open);
            if (open.size_bytes <= (std::uint64_t{1} << 34)) channel_.offer_segment(open.segment, open.size_bytes);
        }
        if ((next.header.flags & wire::kFlagWaiting) != 0) pending_.insert(next.header.request);
        channel_.push(frame, next.payload);
        ++frames_;
    }
    // A recording may end without a farewell: wait for all work, then say goodbye.
    void finish() {
        is_fed_ = true;
        std::byte frame[wire::encoded_size<wire::Fence>(0)];
        auto* fence = wire::begin_frame<wire::Fence>(frame, 0, 0, 0, 0);
        fence->token = kLastToken;
        channel_.push(frame);
        pending_.insert(kLastRequest);
    }

    void receive(std::span<const std::byte> frame, std::span<const std::byte> payload) {
        const wire::FrameHeader header = wire::header_of(frame);
        const auto at = frame.subspan(sizeof(wire::FrameHeader));
        switch (header.opcode) {
            case wire::Reply::kOpcode: {
                wire::Reply reply;
                std::memcpy(&reply, at.data(), sizeof reply);
                pending_.erase(header.request);
                if (reply.status != CUDA_SUCCESS && reply.status != CUDA_ERROR_NOT_READY)
                    fail(reply.status, "reply to request " + std::to_string(header.request));
                break;
            }
            case wire::Data::kOpcode: {
                wire::Data data;
                std::memcpy(&data, at.data(), sizeof data);
                const auto bytes = payload.empty() ? at.subspan(sizeof data, data.size_bytes) : payload;
                copied_out_ += bytes.size();
                checksum_.update(bytes);
                break;
            }
            case wire::Error::kOpcode: {
                wire::Error error;
                std::memcpy(&error, at.data(), sizeof error);
                fail(error.status, wire::text_of(at.subspan(sizeof error)));
                break;
            }
            case wire::FenceDone::kOpcode: {
                wire::FenceDone done;
                std::memcpy(&done, at.data(), sizeof done);
                if (done.token == kLastToken) pending_.erase(kLastRequest);
                break;
            }
            case wire::Pull::kOpcode: {
                wire::Pull pull;
                std::memcpy(&pull, at.data(), sizeof pull);
                pulls_.insert(pull.pull);
                break;
            }
            default: break;
        }
    }
    void fail(int status, std::string_view text) {
        ++errors_;
        if (first_error_.empty()) first_error_ = name_of(static_cast<CUresult>(status)) + ": " + std::string(text);
    }
    std::string report(double seconds) {
        const SessionCounters& counters = session_.counters();
        std::string out =
            "{\"frames\":" + std::to_string(frames_) + ",\"launches\":" + std::to_string(counters.launches) +
            ",\"copied_in_bytes\":" + std::to_string(counters.copied_in_bytes) +
            ",\"copied_out_bytes\":" + std::to_string(copied_out_) +
            ",\"copied_out_sha256\":" + json_string(to_hex(checksum_.finish())) +
            ",\"seconds\":" + std::to_string(seconds) + ",\"errors\":" + std::to_string(errors_) + ",\"first_error\":";
        if (first_error_.empty() && session_.is_over() && session_.end().kind != EndReason::Kind::goodbye)
            first_error_ = session_.end().text;
        out += first_error_.empty() ? "null" : json_string(first_error_);
        out += std::string(",\"cut_off\":") + (recording_.is_cut_off() ? "true" : "false") +
               ",\"peak_memory_bytes\":" + std::to_string(session_.peak_memory_bytes()) + "}";
        return out;
    }

    static constexpr std::uint64_t kLastToken = ~std::uint64_t{0};
    static constexpr std::uint64_t kLastRequest = ~std::uint64_t{0};

    Recording recording_;
    Recorded held_;
    bool has_held_ = false;
    bool is_fed_ = false;
    std::uint64_t frames_ = 0, copied_out_ = 0, errors_ = 0;
    Sha256 checksum_;
    std::string first_error_;
    std::unordered_set<std::uint64_t> pending_;
    std::unordered_set<std::uint32_t> pulls_;
    MemoryChannel channel_;
    Session session_;
};

}  // namespace

Result<std::string> replay(const std::string& path, const driver::DriverTable& driver, SessionOptions options) {
    Result<Recording> recording = Recording::open(path);
    if (!recording) return recording.take_status();
    return Player(std::move(*recording), driver, std::move(options)).run();
}

}  // namespace weft::executor
