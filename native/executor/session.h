// One session: takes the client's frames in, gives them to the driver in an allowed order, and tells the client what
// became of them. Single-threaded: the owner calls turn() and wait() in a loop. Never blocks in the driver, never waits
// to send without receiving. Design note: docs/design/executor.md; contract: docs/design/call-path.md.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "executor/completion.h"
#include "executor/device_box.h"
#include "executor/graphs.h"
#include "executor/helper.h"
#include "executor/host_memory.h"
#include "executor/image_cache.h"
#include "executor/memory.h"
#include "executor/module_loader.h"
#include "executor/objects.h"
#include "executor/outbox.h"
#include "executor/output.h"
#include "executor/waker.h"
#include "gen/executor_dispatch.h"
#include "gen/wire_frames.h"
#include "transport/channel.h"
#include "wire/describe.h"

namespace weft::executor {

struct SessionOptions {
    std::vector<int> devices{0};           // ordinals of the driver
    std::vector<std::uint64_t> cap_bytes;  // of each device, or one for all; 0 or none: all of it
    std::string cache_directory;           // empty: images stay in memory
    std::uint64_t cache_bytes = 4ull << 30;
    std::string name;
    std::string version;
    bool captures_output = false;  // what kernels print goes to the client; this process's own stdout is taken for it
    LeaseUsage* usage =
        nullptr;  // the page of the lease; outlives the session. Null: the session has the lease for itself
};

struct SessionCounters {
    std::uint64_t frames = 0, launches = 0, copied_in_bytes = 0, copied_out_bytes = 0, errors = 0, frames_parked = 0;
};

// Why a session ended.
struct EndReason {
    enum class Kind { none, goodbye, client_gone, protocol, refused };
    Kind kind = Kind::none;
    std::string text;
};
std::string_view to_string(EndReason::Kind kind);

// A frame on its way to the driver.
struct Arrival {
    wire::FrameHeader header{};
    std::span<const std::byte> frame;
    std::span<const std::byte> payload;
    transport::Buffer buffer;  // of the channel, if the payload lies there; release it, or keep it and clear this
    std::shared_ptr<std::byte> memory;  // if the payload lies in memory of ours
    StreamState* stream = nullptr;
    ContextState* context = nullptr;
    bool is_landed = false;    // the payload is where it belongs already
    bool is_answered = false;  // a query that was answered "not ready" when it came
};

// The fields of a frame that was checked.
template <typename Frame>
Frame fields_of(const Arrival& arrival) {
    Frame fields;
    std::memcpy(&fields, arrival.frame.data() + sizeof(wire::FrameHeader), sizeof fields);
    return fields;
}
template <typename Frame>
std::span<const std::byte> tail_of(const Arrival& arrival) {
    return arrival.frame.subspan(sizeof(wire::FrameHeader) + sizeof(Frame));
}
template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
}

class Session : private CallResolver {
  public:
    static constexpr std::size_t kMaxStreams = 65536, kMaxEvents = 1u << 20, kMaxModules = 16384, kMaxContexts = 64;
    static constexpr std::size_t kMaxSegments = 65536, kMaxUploads = 1024, kMaxGraphs = 65536;
    static constexpr std::uint32_t kMaxGraphNodes = 1u << 20;  // of all graphs
    static constexpr std::size_t kMaxGraphBytes = 1u << 30;
    static constexpr std::uint64_t kMaxUploadBytes = 1ull << 30;
    static constexpr std::uint32_t kMaxParkedPerStream = 4096;
    static constexpr std::size_t kMaxParkedBytes = 1u << 30, kMaxBacklogBytes = 64u << 20;
    static constexpr std::size_t kMaxJobs = 1024, kMaxArrays = 65536, kMaxMappings = 1u << 20, kMaxTextures = 1u << 20;

    Session(transport::Channel& channel, const driver::DriverTable& driver, SessionOptions options);
    ~Session() override;
    // Looks at the devices. Error: the driver or the options do not allow a session.
    Status open();

    // Does what can be done now; false if there was nothing.
    bool turn();
    // Sleeps until there may be something to do.
    void wait();
    bool is_over() const { return end_.kind != EndReason::Kind::none; }
    const EndReason& end() const { return end_; }

    const SessionCounters& counters() const { return counters_; }
    std::uint64_t replies() const { return outbox_.replies(); }
    std::uint64_t peak_memory_bytes() const;
    // The helper thread has work for the session.
    bool has_jobs() const { return helper_->size() != 0; }
    std::size_t parked_frames() const { return parking_.parked_count(); }
    std::uint64_t window_base() const { return window_base_; }
    std::uint64_t window_stride_bytes() const { return window_stride_bytes_; }
    const std::vector<wire::DeviceInfo>& devices() const { return device_infos_; }

  private:
    using Run = Outcome (Session::*)(Arrival&);
    // When a frame may run.
    enum class When : std::uint8_t {
        at_once,
        in_stream,
        record,
        wait_event,
        query_stream,
        look,
        query_event,
        look_two,
        barrier,
        map,
        graph_update,
        graph_launch
    };
    struct Entry {
        Run run = nullptr;
        When when = When::at_once;
        bool needs_context = true;
    };
    static const Entry* entry_of(std::uint16_t opcode);

    struct DeviceState {
        CUdevice device = 0;
        MemoryAccount account{0};
        ExtentMap extents;
        std::uint64_t granularity = 0;
    };
    struct ParkedFrame;
    struct StoredFrame {
        std::vector<std::byte> frame;
        std::vector<std::byte> payload;
    };
    struct Pull {
        StreamState* stream;
        std::uint64_t destination, size_bytes, received = 0;
        CUresult failure = CUDA_SUCCESS;
        bool is_asked = false;                           // PULL was sent
        std::shared_ptr<const DeviceBox> box = nullptr;  // the packed bytes of a box
    };
    // A function of the client that a stream waits for.
    struct HostCall {
        StreamState* stream;
        bool is_asked = false;  // HOST_CALL was sent
    };
    struct CopyOut {
        wire::FrameHeader header;
        StreamState* stream = nullptr;
        std::uint64_t source = 0, size_bytes = 0, offset = 0;
        std::uint32_t transfer = 0;
        EventRef last;
        std::shared_ptr<const DeviceBox> box;  // instead of source
    };
    struct Segment {
        std::span<std::byte> bytes;
    };

    // --- session.cpp: the loop
    bool receive();
    bool may_receive() const;
    void handle(const transport::Received& received);
    void accept(Arrival& arrival, const wire::FrameInfo& info);
    void submit_or_park(Arrival& arrival, const Entry& entry);
    void park(Arrival& arrival, ParkingQueue& queue, const FrameOrder& order);
    Outcome run_parked(ParkingQueue& queue, Parcel& parcel);
    Outcome run(Arrival& arrival, const Entry& entry);
    bool resume_backlog();
    void handle_stored(const StoredFrame& stored);
    void refuse_unordered(const Arrival& arrival, const wire::FrameInfo& info, CUresult status);
    void push_credit(StreamState& stream);
    // Before a sleep: streams that somebody waits for shall wake the loop when they get here.
    void arm_wakers();
    void wake_at_end_of(StreamState& stream);
    void release_everything();
    void release_context(ContextState& context);
    void store(const transport::Received& received);
    bool pump_parked();
    bool look_at_streams(Completion::Time now);
    bool push_logs();
    void* place(std::span<const std::byte> frame);
    FrameOrder order_of(const Arrival& arrival, When when);
    void fail(EndReason::Kind kind, std::string text);

    // --- errors
    void reply(const Arrival& arrival, CUresult status, std::span<const std::byte> tail = {});
    void answer(const wire::FrameHeader& header, CUresult status, std::span<const std::byte> tail = {});
    // A waiting frame gets the reply, another one an ERROR push.
    void refuse(const Arrival& arrival, CUresult status, std::string_view detail = {});
    void push_error(std::uint32_t context, CUresult status, std::uint16_t opcode, std::string_view detail);
    // The driver said that work of this context failed.
    void report(ContextState& context, CUresult status, std::uint16_t opcode);
    Outcome bad_frame(const Arrival& arrival, std::string_view what);

    // --- contexts and devices (session_setup.cpp)
    Outcome on_hello(Arrival& arrival);
    Outcome on_window(Arrival& arrival);
    Outcome on_goodbye(Arrival& arrival);
    Outcome on_ctx_create(Arrival& arrival);
    Outcome on_ctx_destroy(Arrival& arrival);
    void propose_window(const Arrival& arrival, std::uint64_t base, std::uint64_t stride_bytes);
    void open_context(ContextState& context);
    void close_context(std::shared_ptr<ContextState> context, bool reset);
    void set_current(ContextState& context);
    // For host memory, which any context may own. False: there is none yet.
    bool make_any_current();
    void drop_streams(ContextState& context);
    ContextState* find_context(std::uint32_t number);
    void register_logs();

    // --- synchronisation of a context (session_sync.cpp)
    Outcome on_ctx_sync(Arrival& arrival);
    void answer_with_bytes(const wire::FrameHeader& header, std::uint64_t source, std::uint32_t size_bytes);
    bool read_by_driver(const wire::FrameHeader& header, ContextState& context, std::uint64_t source,
                        std::uint32_t size_bytes);
    void drop_reader(ContextState& context);

    // --- memory and segments (session_memory.cpp)
    Outcome on_mem_map(Arrival& arrival);
    Outcome on_mem_unmap(Arrival& arrival);
    Outcome on_note_alloc(Arrival& arrival);
    Outcome on_note_free(Arrival& arrival);
    Outcome on_fence(Arrival& arrival);
    Outcome on_segment_open(Arrival& arrival);
    Outcome on_segment_close(Arrival& arrival);
    void run_memory_job(std::function<void()> work, std::function<void()> finished);

    // --- copies (session_copies.cpp)
    // The work on the frame at the head of the stream's parked ones is done.
    void release(StreamState& stream);
    Outcome on_copy_h2d(Arrival& arrival);
    Outcome on_copy_h2d_inline(Arrival& arrival);
    Outcome on_copy_h2d_segment(Arrival& arrival);
    Outcome on_copy_h2d_pull(Arrival& arrival);
    Outcome on_pull_data(Arrival& arrival);
    Outcome on_copy_d2h(Arrival& arrival);
    Outcome on_copy_d2h_segment(Arrival& arrival);
    CUresult copy_in(Arrival& arrival, StreamState& stream, std::uint64_t destination,
                     std::span<const std::byte> bytes);
    bool hold_source(Arrival& arrival, std::span<const std::byte>* bytes);
    void keep_source(Arrival& arrival, StreamState& stream);
    Outcome start_pull(const Arrival& arrival, std::uint32_t number, Pull pull);
    Outcome start_copy_out(Arrival& arrival, CopyOut copy);
    CUresult read_device(const CopyOut& copy, std::byte* to, std::uint64_t offset, std::size_t size);
    bool read_directly(const CopyOut& copy, std::byte* to, std::uint64_t offset, std::size_t size);
    void* direct_access(StreamState& stream, std::uint64_t address, std::uint64_t size_bytes);
    bool is_stream_idle(StreamState& stream);
    bool is_idle_with_relations(StreamState& stream);
    std::span<std::byte> segment_bytes(std::uint32_t segment, std::uint64_t offset, std::uint64_t size_bytes);
    void pin_segment(std::uint32_t segment);
    Outcome finish_segment_copy(Arrival& arrival, CUresult result);
    Outcome copy_out_small(Arrival& arrival, const CopyOut& copy);
    bool advance_copies_out();
    bool advance_copy_out(CopyOut& copy);
    CUresult copy_out_piece(CopyOut& copy, transport::Buffer buffer, std::size_t size);
    bool is_alive(const StreamState* stream, std::uint32_t context_number);
    void finish_copy_out(const CopyOut& copy, CUresult status);
    void report_copy_out(const wire::FrameHeader& header, CUresult status);
    void fail_copy_out(const CopyOut& copy, CUresult status);
    void* place_copy(std::span<const std::byte> frame);
    void* place_pull(std::span<const std::byte> frame);

    // --- copies of boxes (session_boxes.cpp)
    Outcome on_copy_box_h2d(Arrival& arrival);
    Outcome on_copy_box_pull(Arrival& arrival);
    Outcome on_copy_box_d2h(Arrival& arrival);
    Outcome on_copy_box_segment(Arrival& arrival);
    Outcome on_copy_box_d2d(Arrival& arrival);
    bool complete_box(Arrival& arrival, bool is_array, DeviceBox* box);
    CUresult copy_box_in(Arrival& arrival, StreamState& stream, const DeviceBox& box, std::uint64_t offset,
                         std::span<const std::byte> bytes);
    // --- host functions (session_host.cpp)
    Outcome on_host_function(Arrival& arrival);
    Outcome on_host_done(Arrival& arrival);
    void ask_for_host_call(std::uint32_t call, CUresult status);

    // --- graphs (session_graphs.cpp)
    Outcome on_graph_create(Arrival& arrival);
    Outcome on_graph_node(Arrival& arrival);
    Outcome on_graph_edges(Arrival& arrival);
    Outcome on_graph_instantiate(Arrival& arrival);
    Outcome on_graph_update(Arrival& arrival);
    Outcome on_graph_launch(Arrival& arrival);
    Outcome on_graph_destroy(Arrival& arrival);
    GraphState* find_graph(const Arrival& arrival, std::uint32_t number);
    // What the inner frame of a node must be; says what is wrong.
    std::string_view check_inner(const Arrival& arrival, std::span<const std::byte> inner) const;
    bool take_graph_bytes(GraphState& graph, std::size_t bytes);
    CUresult describe_work(ContextState& context, std::span<const std::byte> frame, GraphWork* work);
    void resolve_nodes(GraphState& graph);
    FrameOrder graph_order(const Arrival& arrival, When when);
    // Goes on with the launch that the stream is in; true when all of it is with the driver.
    bool advance_graph(StreamState& stream);
    bool run_graph_step(StreamState& stream, GraphRun& run);
    Outcome run_graph_node(StreamState& stream, GraphRun& run, std::uint32_t index);
    void end_graph_launch(StreamState& stream, GraphRun& run);
    void drop_graphs(ContextState& context);

    // --- what kernels print (session_output.cpp)
    void start_output(ContextState& context);
    // At a synchronisation point of the context: before the reply leaves, what its kernels printed does.
    void collect_output(ContextState& context);

    // --- virtual memory of the client (session_virtual.cpp)
    Outcome on_address_reserve(Arrival& arrival);
    Outcome on_address_free(Arrival& arrival);
    Outcome on_physical_create(Arrival& arrival);
    Outcome on_physical_release(Arrival& arrival);
    Outcome on_physical_map(Arrival& arrival);
    Outcome on_physical_unmap(Arrival& arrival);
    Outcome on_physical_access(Arrival& arrival);
    void answer_job(const Arrival& arrival, std::function<CUresult()> work, std::function<void(CUresult)> finished);
    void release_if_gone(std::uint32_t physical);
    void release_virtual_memory();

    // --- arrays, textures, surfaces (session_arrays.cpp)
    Outcome on_array_create(Arrival& arrival);
    Outcome on_array_destroy(Arrival& arrival);
    Outcome on_texture_create(Arrival& arrival);
    Outcome on_texture_destroy(Arrival& arrival);
    bool describe_resource(const wire::TextureCreate& create, const ContextState& context,
                           CUDA_RESOURCE_DESC* resource);
    void forget_arrays(const ContextState& context);

    // --- modules (session_modules.cpp)
    Outcome on_module_load(Arrival& arrival);
    Outcome on_image(Arrival& arrival);
    Outcome on_module_unload(Arrival& arrival);
    Outcome on_link(Arrival& arrival);
    void finish_load(const wire::FrameHeader& header, std::uint32_t number,
                     const std::shared_ptr<ContextState>& context, LoadedModule& loaded);
    std::optional<std::vector<std::byte>> take_upload(const wire::Hash& hash);

    // --- launches and generated calls (session_calls.cpp)
    Outcome on_launch(Arrival& arrival);
    CUresult launch_with_attributes(const Arrival& arrival, const wire::Launch& launch, CUfunction function,
                                    std::span<const std::byte> attribute_bytes, void** arguments);
    Outcome on_call(Arrival& arrival);
    CUresult stream(std::uint32_t number, CUstream* out) override;
    CUresult event(std::uint32_t number, CUevent* out) override;
    CUresult function(std::uint32_t module, std::uint32_t index, CUfunction* out) override;

    // --- streams and events (session_streams.cpp)
    Outcome on_stream_create(Arrival& arrival);
    Outcome on_stream_destroy(Arrival& arrival);
    Outcome on_stream_sync(Arrival& arrival);
    Outcome on_stream_query(Arrival& arrival);
    Outcome on_stream_wait_event(Arrival& arrival);
    Outcome on_event_create(Arrival& arrival);
    Outcome on_event_destroy(Arrival& arrival);
    Outcome on_event_record(Arrival& arrival);
    Outcome on_event_sync(Arrival& arrival);
    Outcome on_event_query(Arrival& arrival);
    Outcome on_event_elapsed(Arrival& arrival);
    StreamState* find_stream(ContextState& context, std::uint32_t number);
    void submitted(StreamState& stream) {
        if (stream.in_flight.add(1)) [[unlikely]]
            mark(stream);
    }
    void mark(StreamState& stream);
    void look_at(StreamState& stream);
    CUresult renew_event(EventState& event);
    // Replies when everything in `events` is complete; at once if there is nothing.
    void reply_when(const Arrival& arrival, std::vector<EventRef> events, CUresult status);
    // The same, with something else than a plain answer to a success.
    void reply_when(const Arrival& arrival, std::vector<EventRef> events, CUresult status,
                    std::function<void(const wire::FrameHeader&)> succeed);
    void reply_when_stream_is_done(const Arrival& arrival);
    // Marks the end of what the context's streams have in the driver, as far as it is not complete. Returns an error of
    // the context.
    CUresult collect_pending(ContextState& context, std::vector<EventRef>* events);
    void when_all_complete(std::function<void()> then);

    transport::Channel& channel_;
    const driver::DriverTable& driver_;
    SessionOptions options_;
    EndReason end_;
    SessionCounters counters_;

    std::vector<DeviceState> devices_;
    std::vector<wire::DeviceInfo> device_infos_;
    std::int32_t driver_version_ = 0;
    std::uint64_t window_base_ = 0, window_stride_bytes_ = 0;
    bool is_greeted_ = false;

    HostMemory host_memory_;
    Outbox outbox_;
    Completion completion_;
    Parking parking_;
    std::size_t parked_bytes_ = 0;

    std::unordered_map<std::uint32_t, std::shared_ptr<ContextState>> contexts_;
    ContextState* last_context_ = nullptr;
    std::vector<std::shared_ptr<ContextState>> ending_;  // destroyed by the client, with work in flight
    Table<StreamState> streams_;
    Table<EventState> events_;
    Table<ModuleState> modules_;
    std::unordered_map<std::uint32_t, std::shared_ptr<GraphState>> graphs_;
    std::size_t graph_nodes_ = 0, graph_bytes_ = 0;
    std::unordered_map<std::uint32_t, Segment> segments_;
    std::unordered_map<std::uint32_t, ArrayState> arrays_;
    std::map<std::uint64_t, std::uint64_t> reservations_;  // of the client: address -> size
    struct PhysicalState {
        std::size_t device = 0;
        std::uint64_t size_bytes = 0;
        CUmemGenericAllocationHandle handle = 0;  // 0: still being made
        bool is_released = false;
        unsigned mappings = 0;
    };
    std::unordered_map<std::uint32_t, PhysicalState> physical_;
    std::map<std::uint64_t, std::uint32_t> mappings_;  // address -> number of the memory
    struct TextureState {
        ContextState* context;
        bool is_surface;
    };
    std::unordered_map<std::uint64_t, TextureState> textures_;  // by the driver's handle
    std::unordered_map<std::uint32_t, Pull> pulls_;
    std::unordered_map<std::uint32_t, HostCall> host_calls_;
    std::deque<CopyOut> copies_out_;
    std::vector<StreamState*> looked_at_;
    std::vector<std::unique_ptr<StreamState>> graveyard_;  // destroyed during this turn
    std::vector<std::unique_ptr<StreamState>> dying_;      // destroyed, with buffers in flight

    struct Upload {
        std::vector<std::byte> bytes;
    };
    std::map<wire::Hash, Upload> uploads_;
    std::uint64_t upload_bytes_ = 0;

    // While a context is being made, frames wait here in order.
    int paused_ = 0;
    int dying_contexts_ = 0;
    bool waits_for_dying_ =
        false;  // the backlog begins with a CTX_CREATE that has to wait for the end of another context
    std::deque<StoredFrame> backlog_;
    std::size_t backlog_bytes_ = 0;

    int memory_jobs_ = 0;  // unmapping memory just now: nobody may touch it directly
    int parked_unmaps_ = 0;
    std::shared_ptr<std::byte> placed_memory_;  // where the payload under way lands, if in memory of ours
    bool placed_directly_ = false;              // it lands in device memory
    CUcontext current_ = nullptr;
    ContextState* call_context_ = nullptr;  // of the generated call under way

    std::unique_ptr<ModuleLoader> loader_;
    std::unique_ptr<CapturedOutput> output_;  // once a module was loaded whose kernels print
    std::shared_ptr<Waker> waker_;
    std::vector<StreamState*> to_wake_;  // somebody waits for them and no waker is in them yet
    std::mutex log_mutex_;
    std::vector<std::pair<int, std::string>> logs_;
    std::atomic<bool> has_logs_{false};
    CUlogsCallbackHandle log_handle_ = nullptr;
    std::unique_ptr<Helper> helper_;  // last: its thread ends first
};

}  // namespace weft::executor
