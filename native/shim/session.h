// One session: the ordered stream of frames between this process and its executor, seen from the program's threads.
// Any thread may send and wait. Whoever waits receives for everybody (one leader at a time); a helper thread sends what
// callers left behind and receives only while something is expected that nobody waits for. Design note:
// docs/design/shim.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "gen/cuda_abi.h"
#include "gen/wire_frames.h"
#include "shim/call_scope.h"
#include "shim/helper_thread.h"
#include "shim/inbound.h"
#include "shim/stats_page.h"
#include "shim/transfers.h"
#include "transport/channel.h"

namespace weft::shim {

class Recorder;

// The answer to a waiting call.
struct Reply {
    CUresult status = CUDA_SUCCESS;
    std::vector<std::byte> tail;
};

class Session {
  public:
    static constexpr CUresult kLost = CUDA_ERROR_DEVICE_UNAVAILABLE;

    // stats and recorder may be null; both outlive the session.
    Session(std::unique_ptr<transport::Channel> channel, InboundEvents& events, StatsPage* stats, Recorder* recorder,
            std::string server);
    // Starts the helper thread.
    Status start();

    // Sends one frame without an answer; fill(frame, tail) writes its fields. kLost when the session is over.
    template <typename Frame, typename Fill>
    CUresult send(std::uint32_t context, std::size_t tail_bytes, Fill&& fill) {
        return append<Frame>(context, 0, 0, tail_bytes, fill) ? CUDA_SUCCESS : kLost;
    }
    // Sends one frame with an answer and waits for it.
    template <typename Frame, typename Fill>
    Reply call(std::uint32_t context, std::size_t tail_bytes, Fill&& fill) {
        Waiter waiter(*this);
        if (!append<Frame>(context, waiter.request, wire::kFlagWaiting, tail_bytes, fill)) return Reply{kLost, {}};
        return wait_for(waiter);
    }
    // Sends a frame with a payload of at most payload_piece_bytes(); the bytes are taken before this returns. `placed`
    // runs with the append role held, when the frame has its place in the stream of frames.
    template <typename Frame, typename Fill>
    CUresult send_payload(
        std::uint32_t context, std::span<const std::byte> payload, Fill&& fill,
        const std::function<void()>& placed = [] {}) {
        alignas(8) std::byte header[wire::encoded_size<Frame>(0)] = {};
        Frame* frame = wire::begin_frame<Frame>(header, context, 0, wire::kFlagPayload, 0);
        fill(*frame);
        reinterpret_cast<wire::FrameHeader*>(header)->payload_bytes = static_cast<std::uint32_t>(payload.size());
        return push_payload({header, payload}, placed);
    }

    // Receives what is there, without waiting.
    void drain();
    // Receives and waits until condition() holds (it is asked after every frame); false when the session is lost.
    bool wait_until(const std::function<bool()>& condition);
    // While something is expected that nobody waits for, the helper receives.
    void expect_inbound();
    void expected_arrived(std::size_t count = 1) { expected_.fetch_sub(static_cast<int>(count)); }
    // Runs soon on the helper thread, which holds no lock then. For replies that the receiving thread must not send
    // itself.
    void post(std::function<void()> job);

    std::size_t payload_piece_bytes() const { return channel_->payload_piece_bytes(); }
    Transfers& transfers() { return transfers_; }
    transport::Channel& channel() { return *channel_; }
    const std::string& server() const { return server_; }
    // A recording holds the bytes of copies, so page-locked memory is not shared while one is made.
    bool is_recorded() const { return recorder_ != nullptr; }
    bool is_lost() const { return lost_.load(std::memory_order_acquire); }
    // Ends the session for every caller, with one line on stderr.
    void lose(std::string_view reason);
    // In a forked child: closes the descriptors; takes no lock.
    void abandon_after_fork();

  private:
    struct Waiter {
        explicit Waiter(Session& session);
        ~Waiter();
        Waiter(const Waiter&) = delete;
        Session& session;
        std::uint32_t request = 0;
        std::atomic<bool> done{false};
        Reply reply;
    };

    template <typename Frame, typename Fill>
    bool append(std::uint32_t context, std::uint32_t request, std::uint16_t flags, std::size_t tail_bytes,
                Fill&& fill) {
        const std::size_t size = wire::encoded_size<Frame>(tail_bytes);
        std::byte* at = begin(size);
        if (at == nullptr) return false;
        Frame* frame = wire::begin_frame<Frame>(at, context, request, flags, tail_bytes);
        fill(*frame, at + sizeof(wire::FrameHeader) + sizeof(Frame));
        finish(at, size);
        return true;
    }
    std::byte* begin(std::size_t size);  // nullptr: lost; else append_mutex_ is held until finish
    void finish(std::byte* at, std::size_t size);
    struct PayloadFrame {
        std::span<const std::byte> header, payload;
    };
    CUresult push_payload(const PayloadFrame& frame, const std::function<void()>& placed);
    CUresult push_through_buffer(const PayloadFrame& frame, const std::function<void()>& placed);
    CUresult push_directly(const PayloadFrame& frame, const std::function<void()>& placed);

    void publish();
    void flush();
    bool make_room();
    Reply wait_for(Waiter& waiter);
    bool lead(const std::function<bool()>& condition, bool writable);
    void follow(const std::function<bool()>& condition);
    void stop_leading();
    bool receive_available();
    void handle(const transport::Received& received);
    void handle_reply(const transport::Received& received);
    void handle_data(const transport::Received& received);
    void* place(std::span<const std::byte> frame);
    bool help();  // one turn of the helper thread; false when there was nothing to do
    void count_traffic();

    std::unique_ptr<transport::Channel> channel_;
    InboundEvents& events_;
    StatsPage* stats_;
    Recorder* recorder_;
    std::string server_;
    bool shared_memory_;
    Transfers transfers_;
    std::atomic<bool> lost_{false};

    std::mutex append_mutex_;
    std::mutex flush_mutex_;
    std::mutex receive_mutex_;

    std::mutex waiters_mutex_;  // guards waiters_, led_ and the replies
    std::condition_variable followers_;
    std::atomic<int> following_{0};
    bool led_ = false;
    std::vector<Waiter*> waiters_;
    std::uint32_t next_request_ = 0;

    HelperThread helper_;
    std::atomic<std::int64_t> last_inline_flush_ns_{0};
    std::atomic<bool> helper_leads_{false};
    std::atomic<int> expected_{0};
    std::mutex jobs_mutex_;
    std::vector<std::function<void()>> jobs_;
    std::atomic<bool> has_jobs_{false};

    std::mutex counters_mutex_;
    transport::Counters published_;
};

}  // namespace weft::shim
