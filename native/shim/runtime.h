// The shim's state after cuInit: the session, the devices, and the tables of what the program made. Lives until the
// process ends; nothing in it has a destructor that runs at exit.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "shim/callbacks.h"
#include "shim/device_memory.h"
#include "shim/device_range.h"
#include "shim/host_memory.h"
#include "shim/inbound.h"
#include "shim/memory_pool.h"
#include "shim/objects.h"
#include "shim/output.h"
#include "shim/progress.h"
#include "shim/recorder.h"
#include "shim/reserved_pages.h"
#include "shim/session.h"
#include "shim/settings.h"
#include "shim/textures.h"
#include "shim/unified_memory.h"
#include "shim/virtual_memory.h"

namespace weft::shim {

class Runtime : public InboundEvents {
  public:
    static constexpr std::size_t kMaxDevices = 64;

    // cuInit: connects on the first call; later calls return the same result. Thread-safe.
    static CUresult initialize();
    // Null before cuInit succeeded, and in a forked child.
    static Runtime* get() { return instance_.load(std::memory_order_acquire); }
    // Why a call cannot be served: NOT_INITIALIZED, why cuInit failed, or NOT_PERMITTED inside a host function.
    static CUresult absent();

    Session& session() { return *session_; }
    const wire::HelloReply& server() const { return hello_; }
    std::vector<std::unique_ptr<Device>>& devices() { return devices_; }
    Device* device(int ordinal);
    // The device whose window holds the address.
    Device* device_of(CUdeviceptr address);
    HostMemory& host_memory() { return *host_memory_; }
    Output& output() { return output_; }
    Callbacks& callbacks() { return *callbacks_; }
    Progress& progress() { return progress_; }
    UnifiedMemory& unified() { return unified_; }

    HandleTable<Context, HandleTag::context> contexts;
    HandleTable<Stream, HandleTag::stream> streams;
    HandleTable<Event, HandleTag::event> events;
    HandleTable<Module, HandleTag::module> modules;
    HandleTable<Function, HandleTag::function> functions;
    HandleTable<MemoryPool, HandleTag::pool> pools;
    HandleTable<Array, HandleTag::array> arrays;
    TextureTable textures;
    HandleTable<PhysicalMemory, HandleTag::memory> physical_memory;
    VirtualMemory virtual_memory;

    std::uint32_t next_number() { return next_number_.fetch_add(1) + 1; }

    // Makes the context known to the executor, and to inbound events by its number.
    CUresult open_context(const std::shared_ptr<Context>& context);
    // Ends the context and all that belongs to it.
    void close_context(Context& context, bool reset);
    // A module that was loaded: its globals become known, its address ranges are reserved. False: a range is taken in
    // this process.
    bool adopt_module(const std::shared_ptr<Module>& module);
    // The global of some module that holds the address.
    std::optional<DeviceRange> find_global(CUdeviceptr address);
    // Takes the module, its functions and its reserved ranges out of this process's tables.
    void forget_module(Module& module);
    std::shared_ptr<Context> context_by_number(std::uint32_t number);

    CUresult open_stream(Context& context, unsigned flags, int priority, std::shared_ptr<Stream>* made);
    void close_stream(Stream& stream);
    // Work of the stream known to be complete; 0 if the stream is gone.
    std::uint64_t stream_done_work(Context& context, std::uint32_t number);
    CUresult open_event(Context& context, unsigned flags, std::uint64_t* handle);
    void close_event(std::uint64_t handle);
    // Announces that the bytes will be sent when the executor asks for pull number N.
    // stays: of a graph, asked for once per launch until close_pull().
    std::uint32_t open_pull(const void* source, std::uint64_t size_bytes, bool stays = false);
    // The bytes are those of a packed box.
    std::uint32_t open_pull(const std::byte* base, const Pitches& pitches, const Box& box, bool stays = false);
    void close_pull(std::uint32_t pull);
    // Runs `then` when all work up to this number is complete: soon after, when something else asks.
    void when_done(std::uint64_t work, std::function<void()> then);
    // Before kernels that print are taken away: waits for the context's work, so that what they print is not lost.
    void wait_for_output(Context& context);
    // Waits until all work of all contexts sent so far is complete.
    CUresult wait_for_everything();
    // True if this is the only context there is: its synchronisation covers all work.
    bool is_only_context() const { return open_contexts_.load() <= 1; }

    void on_error(std::uint32_t context, CUresult status, bool sticky, std::uint16_t opcode,
                  std::string_view text) override;
    void on_event_done(std::uint32_t event, std::uint32_t record) override;
    void on_stream_done(std::uint32_t stream, std::uint32_t watch) override;
    void on_fence_done(std::uint64_t token) override;
    void on_credit(std::uint32_t context, std::uint32_t stream, std::uint32_t frames,
                   std::uint64_t payload_bytes) override;
    void on_pull(std::uint32_t pull) override;
    void on_output(std::uint32_t context, std::uint32_t kind, std::string_view text) override;
    void on_host_call(std::uint32_t call, CUresult status) override;

  private:
    Runtime() = default;
    static void in_forked_child();
    static CUresult start(std::unique_ptr<Runtime>* made);
    Status connect();
    CUresult agree_on_window();
    CUresult greet(std::uint64_t window_base);
    CUresult propose_window(std::uint64_t window_base);
    int reserve_window(std::uint64_t base);
    void make_devices(std::uint64_t base);
    void describe_to_user();
    void send_pull(std::uint32_t pull);
    void forget_arrays(Context& context);
    Stream* stream_by_number(std::uint32_t context, std::uint32_t number);

    static std::atomic<Runtime*> instance_;

    struct Pull {
        const std::byte* source = nullptr;
        Pitches pitches;
        Box box;
        bool stays = false;
    };
    struct Later {
        std::uint64_t work;
        std::function<void()> then;
    };
    Settings settings_;
    std::unique_ptr<Recorder> recorder_;
    std::unique_ptr<Session> session_;
    wire::HelloReply hello_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::unique_ptr<HostMemory> host_memory_;
    std::unique_ptr<Callbacks> callbacks_;
    Progress progress_;
    UnifiedMemory unified_{*this};
    Output output_;
    std::uint64_t window_base_ = 0;
    std::atomic<std::uint32_t> next_number_{0};
    std::atomic<int> open_contexts_{0};

    std::mutex numbers_mutex_;  // never held while sending
    std::unordered_map<std::uint32_t, std::shared_ptr<Context>> contexts_by_number_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Stream>> streams_by_number_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Event>> events_by_number_;
    std::unordered_map<std::uint32_t, Pull> pulls_;
    std::vector<Later> later_;
    std::map<CUdeviceptr, DeviceRange> globals_;  // of all modules, by address
    ReservedPages reserved_;
};

}  // namespace weft::shim
