// cuInit: settings, connection, HELLO, the address window, devices. And the tables by number that inbound events need.
#include "shim/runtime.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gen/cuda_names.h"
#include "shim/connect.h"
#include "shim/log.h"

namespace weft::shim {

std::atomic<Runtime*> Runtime::instance_{nullptr};

namespace {

std::mutex g_start_mutex;
std::atomic<int> g_start_result{-1};  // CUresult of the first cuInit; -1 before
std::atomic<bool> g_forked{false};

constexpr std::uint64_t kFirstWindow = 0x1000'0000'0000;  // 16 TiB: above heaps, below mmap areas on x86-64 and aarch64
constexpr std::uint64_t kWindowStep = 0x0100'0000'0000;   // 1 TiB
constexpr int kWindowTries = 16;
constexpr std::uint64_t kWindowStride = kWindowStep;  // per device; the largest GPUs have a quarter of it

// Address space for one device: room to place extents anew when the old places are fragmented.
std::size_t window_bytes(std::uint64_t cap_bytes) {
    return std::min(kWindowStride, 2 * cap_bytes + (std::uint64_t{64} << 20)) >> 21 << 21;
}

std::string error_text(CUresult status) {
    const char* name = driver::error_name(status);
    return name != nullptr ? name : "error " + std::to_string(status);
}

}  // namespace

// ----------------------------------------------------------------------------------------------------------------
// cuInit

CUresult Runtime::absent() {
    if (is_callback_thread()) return CUDA_ERROR_NOT_PERMITTED;
    const int result = g_start_result.load();
    return result > 0 ? static_cast<CUresult>(result) : CUDA_ERROR_NOT_INITIALIZED;
}

// A child must not use the session of its parent; like CUDA, it answers NOT_INITIALIZED from now on.
void Runtime::in_forked_child() {
    if (Runtime* runtime = instance_.exchange(nullptr)) runtime->session().abandon_after_fork();
    g_forked.store(true);
}

CUresult Runtime::initialize() {
    std::lock_guard lock(g_start_mutex);
    if (g_forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
    if (g_start_result.load() >= 0) return static_cast<CUresult>(g_start_result.load());
    std::unique_ptr<Runtime> made;
    const CUresult result = start(&made);
    if (result == CUDA_SUCCESS) {
        pthread_atfork(nullptr, nullptr, &in_forked_child);
        instance_.store(made.release(), std::memory_order_release);
    }
    g_start_result.store(result);
    return result;
}

CUresult Runtime::start(std::unique_ptr<Runtime>* made) {
    made->reset(new Runtime);
    Runtime& runtime = **made;
    if (const Status connected = runtime.connect(); !connected) {
        log_line(connected.text());
        return connected.code() == ErrorCode::out_of_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NO_DEVICE;
    }
    const CUresult agreed = runtime.agree_on_window();
    // The helper thread refers to the session for ever: a runtime that got this far is never destroyed.
    if (agreed != CUDA_SUCCESS) {
        runtime.session_->abandon_after_fork();
        (void)made->release();
    }
    return agreed;
}

Status Runtime::connect() {
    auto settings = read_settings();
    if (!settings) return settings.take_status();
    settings_ = *settings;
    open_stats(settings_.stats_path);
    if (!settings_.trace_path.empty() && !open_trace(settings_.trace_path.c_str()))
        return Status::from_errno("cannot write the trace to " + settings_.trace_path, errno);
    if (!settings_.record_path.empty()) {
        auto recorder = Recorder::open(settings_.record_path);
        if (!recorder) return recorder.take_status();
        recorder_ = std::move(*recorder);
    }
    auto channel = connect_to_server(settings_);
    if (!channel) return channel.take_status();
    const std::string server = settings_.server_address.empty() ? "of this machine" : settings_.server_address;
    session_ = std::make_unique<Session>(std::move(*channel), *this, g_stats, recorder_.get(), server);
    host_memory_ = std::make_unique<HostMemory>(*session_);
    callbacks_ = std::make_unique<Callbacks>(*session_, output_);
    return session_->start();
}

// HELLO carries the first proposal for the window and brings the description of everything; WINDOW carries further
// ones.
CUresult Runtime::agree_on_window() {
    CUresult status = CUDA_SUCCESS;
    for (int attempt = 0; attempt < kWindowTries; ++attempt) {
        const std::uint64_t base = kFirstWindow + static_cast<std::uint64_t>(attempt) * kWindowStep;
        status = attempt == 0 ? greet(base) : propose_window(base);
        if (status == CUDA_ERROR_INVALID_ADDRESS_SPACE) continue;
        if (status != CUDA_SUCCESS) break;
        const int failure = reserve_window(base);
        if (failure == EEXIST) continue;
        if (failure != 0) {
            log_line("cannot reserve " + std::to_string(window_bytes(hello_.devices[0].total_memory_bytes) >> 30) +
                     " GiB of address space for device memory (" + std::strerror(failure) +
                     "); raise the limit (ulimit -v unlimited)");
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        make_devices(base);
        describe_to_user();
        return CUDA_SUCCESS;
    }
    if (status == CUDA_ERROR_INVALID_ADDRESS_SPACE)
        log_line(
            "found no address range for device memory that is free here and on the server; if address space is limited "
            "(ulimit -v), "
            "raise the limit here or for the server");
    else if (!session_->is_lost())
        log_line("the server " + session_->server() + " refused the session: " + error_text(status));
    return status;
}

CUresult Runtime::greet(std::uint64_t window_base) {
    const std::string_view version = WEFT_VERSION;
    const Reply reply = session_->call<wire::Hello>(0, version.size(), [&](auto& frame, std::byte* tail) {
        frame.protocol = wire::kProtocolVersion;
        frame.process_id = static_cast<std::uint32_t>(::getpid());
        frame.features = 0;
        frame.window_base = window_base;
        frame.window_stride_bytes = kWindowStride;
        std::memcpy(tail, version.data(), version.size());
    });
    if (reply.status != CUDA_SUCCESS && reply.status != CUDA_ERROR_INVALID_ADDRESS_SPACE) return reply.status;
    auto hello = wire::decode_hello_reply(reply.tail);
    if (!hello || hello->devices.empty() || hello->devices.size() > kMaxDevices) {
        session_->lose(hello ? "it offers no device" : hello.status().text());
        return CUDA_ERROR_NO_DEVICE;
    }
    hello_ = std::move(*hello);
    return reply.status;
}

CUresult Runtime::propose_window(std::uint64_t window_base) {
    return session_
        ->call<wire::Window>(0, 0,
                             [&](auto& frame, std::byte*) {
                                 frame.window_base = window_base;
                                 frame.window_stride_bytes = kWindowStride;
                             })
        .status;
}

// Takes the window of every device out of this process's address space, so that no host memory can ever lie there. 0 or
// an errno.
int Runtime::reserve_window(std::uint64_t base) {
    std::size_t device = 0;
    int failure = 0;
    for (; device < hello_.devices.size() && failure == 0; ++device) {
        void* wanted = reinterpret_cast<void*>(base + device * kWindowStride);
        const std::size_t size = window_bytes(hello_.devices[device].total_memory_bytes);
        void* got =
            ::mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED) {
            failure = errno;
            break;
        }
        if (got != wanted) {  // a kernel older than MAP_FIXED_NOREPLACE takes the address as a hint
            ::munmap(got, size);
            failure = EEXIST;
            break;
        }
    }
    if (failure != 0)
        while (device-- > 0)
            ::munmap(reinterpret_cast<void*>(base + device * kWindowStride),
                     window_bytes(hello_.devices[device].total_memory_bytes));
    return failure;
}

void Runtime::make_devices(std::uint64_t base) {
    window_base_ = base;
    for (std::size_t i = 0; i < hello_.devices.size(); ++i) {
        auto device = std::make_unique<Device>();
        device->ordinal = static_cast<int>(i);
        device->info = hello_.devices[i];
        DeviceMemory::Window window;
        window.base = base + i * kWindowStride;
        window.size_bytes = window_bytes(device->info.total_memory_bytes);
        window.granularity_bytes = device->info.granularity_bytes;
        device->memory = std::make_unique<DeviceMemory>(*session_, progress_, static_cast<std::uint32_t>(i), window,
                                                        device->info.total_memory_bytes);
        devices_.push_back(std::move(device));
    }
}

void Runtime::describe_to_user() {
    if (g_stats == nullptr) return;
    if (g_stats->processes.fetch_add(1) != 0) return;
    const wire::DeviceInfo& info = devices_[0]->info;
    std::snprintf(g_stats->device, sizeof g_stats->device, "%.*s", static_cast<int>(info.name.size()),
                  info.name.data());
    std::snprintf(g_stats->path, sizeof g_stats->path, "%s",
                  std::string(transport::to_string(session_->channel().kind())).c_str());
}

Device* Runtime::device(int ordinal) {
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()) return nullptr;
    return devices_[static_cast<std::size_t>(ordinal)].get();
}

Device* Runtime::device_of(CUdeviceptr address) {
    if (address < window_base_) return nullptr;
    const std::uint64_t index = (address - window_base_) / kWindowStride;
    if (index >= devices_.size() || !devices_[index]->memory->owns(address)) return nullptr;
    return devices_[index].get();
}

// ------------------------------------------------------------------------------------------------- what the program
// makes

CUresult Runtime::open_context(const std::shared_ptr<Context>& context) {
    context->number = next_number();
    context->legacy.context = context.get();
    {
        std::lock_guard lock(numbers_mutex_);
        contexts_by_number_[context->number] = context;
    }
    context->sticky = 0;
    context->deferred = 0;
    open_contexts_.fetch_add(1);
    const CUresult sent = session_->send<wire::CtxCreate>(context->number, 0, [&](auto& frame, std::byte*) {
        frame.device = static_cast<std::uint32_t>(context->device->ordinal);
        frame.flags = context->flags;
        frame.primary = context->primary ? 1 : 0;
    });
    context->active = sent == CUDA_SUCCESS;
    return sent;
}

void Runtime::close_context(Context& context, bool reset) {
    wait_for_output(context);
    if (!context.active.exchange(false)) return;
    std::unordered_map<std::uint32_t, std::shared_ptr<Stream>> streams_gone;
    std::unordered_map<std::uint32_t, std::shared_ptr<Module>> modules_gone;
    {
        std::lock_guard lock(context.mutex);
        streams_gone.swap(context.streams);
        modules_gone.swap(context.modules);
    }
    for (auto& [number, stream] : streams_gone) {
        graph::drop_stream(stream->capturing);
        (void)streams.remove(stream->handle);
    }
    for (auto& [number, module] : modules_gone) forget_module(*module);
    const std::uint32_t number = context.number;
    (void)session_->send<wire::CtxDestroy>(number, 0, [&](auto& frame, std::byte*) {
        frame.reset = reset ? 1 : 0;
        (void)progress_.next();
    });
    unified_.free_all_of(number);
    textures.forget_all_of(context);
    forget_arrays(context);
    context.device->memory->free_all_of(number);
    host_memory_->free_all_of(number);
    open_contexts_.fetch_sub(1);
    std::lock_guard lock(numbers_mutex_);
    contexts_by_number_.erase(number);
    for (auto& [stream_number, stream] : streams_gone) streams_by_number_.erase(stream_number);
}

void Runtime::forget_arrays(Context& context) {
    std::vector<std::uint64_t> gone;
    {
        std::lock_guard lock(context.mutex);
        gone.swap(context.arrays);
    }
    for (const std::uint64_t handle : gone)
        if (const auto array = arrays.remove(handle))
            context.device->memory->add_module_bytes(-static_cast<std::int64_t>(array->charged_bytes));
}

std::shared_ptr<Context> Runtime::context_by_number(std::uint32_t number) {
    std::lock_guard lock(numbers_mutex_);
    const auto found = contexts_by_number_.find(number);
    return found != contexts_by_number_.end() ? found->second : nullptr;
}

CUresult Runtime::open_stream(Context& context, unsigned flags, int priority, std::shared_ptr<Stream>* made) {
    auto stream = std::make_shared<Stream>();
    stream->number = next_number();
    stream->context = &context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = stream->number;
    stream->handle = streams.insert(stream);
    if (stream->handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    {
        std::lock_guard lock(numbers_mutex_);
        streams_by_number_[stream->number] = stream;
    }
    {
        std::lock_guard lock(context.mutex);
        context.streams[stream->number] = stream;
    }
    *made = stream;
    return session_->send<wire::StreamCreate>(context.number, 0, [&](auto& frame, std::byte*) {
        frame.stream = stream->number;
        frame.flags = flags;
        frame.priority = priority;
    });
}

void Runtime::close_stream(Stream& stream) {
    Context& context = *stream.context;
    const std::uint32_t number = stream.number;
    std::shared_ptr<Stream> keep = streams.remove(stream.handle);
    {
        std::lock_guard lock(context.mutex);
        context.streams.erase(number);
    }
    {
        std::lock_guard lock(numbers_mutex_);
        streams_by_number_.erase(number);
    }
    if (!context.active) return;
    (void)session_->send<wire::StreamDestroy>(context.number, 0,
                                              [&](auto& frame, std::byte*) { frame.stream = number; });
}

std::uint64_t Runtime::stream_done_work(Context& context, std::uint32_t number) {
    if (number == 0) return context.legacy.done_work.load();
    std::lock_guard lock(numbers_mutex_);
    const auto found = streams_by_number_.find(number);
    return found != streams_by_number_.end() ? found->second->done_work.load() : 0;
}

CUresult Runtime::open_event(Context& context, unsigned flags, std::uint64_t* handle) {
    auto event = std::make_shared<Event>();
    event->number = next_number();
    event->context = &context;
    event->flags = flags;
    *handle = events.insert(event);
    if (*handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    {
        std::lock_guard lock(numbers_mutex_);
        events_by_number_[event->number] = event;
    }
    return session_->send<wire::EventCreate>(context.number, 0, [&](auto& frame, std::byte*) {
        frame.event = event->number;
        frame.flags = flags;
    });
}

void Runtime::close_event(std::uint64_t handle) {
    const std::shared_ptr<Event> event = events.remove(handle);
    {
        std::lock_guard lock(numbers_mutex_);
        events_by_number_.erase(event->number);
    }
    if (!event->context->active) return;
    (void)session_->send<wire::EventDestroy>(event->context->number, 0,
                                             [&](auto& frame, std::byte*) { frame.event = event->number; });
}

bool Runtime::adopt_module(const std::shared_ptr<Module>& module) {
    std::lock_guard lock(numbers_mutex_);
    for (const wire::AddressRange& range : module->description.reserve) {
        if (reserved_.acquire(range.address, range.size_bytes)) {
            module->reserved.push_back(range);
            continue;
        }
        for (const wire::AddressRange& taken : module->reserved) reserved_.release(taken.address, taken.size_bytes);
        module->reserved.clear();
        return false;
    }
    Device* device = module->context->device;
    device->memory->add_module_bytes(static_cast<std::int64_t>(module->global_bytes));
    for (const wire::GlobalInfo& global : module->description.globals)
        globals_[global.range.address] = {global.range.address, global.range.size_bytes, device,
                                          module->context->number};
    return true;
}

void Runtime::forget_module(Module& module) {
    for (const auto& function : module.functions)
        if (const std::uint64_t handle = function->handle.exchange(0); handle != 0) (void)functions.remove(handle);
    std::shared_ptr<Module> keep;
    if (module.handle != 0) keep = modules.remove(std::exchange(module.handle, 0));
    module.context->device->memory->add_module_bytes(-static_cast<std::int64_t>(std::exchange(module.global_bytes, 0)));
    std::lock_guard lock(numbers_mutex_);
    for (const wire::AddressRange& taken : module.reserved) reserved_.release(taken.address, taken.size_bytes);
    module.reserved.clear();
    for (const wire::GlobalInfo& global : module.description.globals) globals_.erase(global.range.address);
}

std::optional<DeviceRange> Runtime::find_global(CUdeviceptr address) {
    std::lock_guard lock(numbers_mutex_);
    auto next = globals_.upper_bound(address);
    if (next == globals_.begin()) return std::nullopt;
    const DeviceRange& range = std::prev(next)->second;
    if (address - range.address >= range.size_bytes) return std::nullopt;
    return range;
}

void Runtime::wait_for_output(Context& context) {
    if (!context.prints.load() || !context.active.load()) return;
    (void)session_->call<wire::CtxSync>(context.number, 0, [](auto&, std::byte*) {});
    output_.write();
}

CUresult Runtime::wait_for_everything() {
    session_->drain();
    if (progress_.is_idle()) return CUDA_SUCCESS;
    std::uint64_t token = 0;
    const CUresult sent = session_->send<wire::Fence>(
        0, 0, [&](auto& frame, std::byte*) { frame.token = token = progress_.submitted(); });
    if (sent != CUDA_SUCCESS) return sent;
    return session_->wait_until([&] { return progress_.done() >= token; }) ? CUDA_SUCCESS : Session::kLost;
}

// ------------------------------------------------------------------------------------------------------- inbound
// events

Stream* Runtime::stream_by_number(std::uint32_t context, std::uint32_t number) {
    if (number == 0) {
        const auto found = contexts_by_number_.find(context);
        return found != contexts_by_number_.end() ? &found->second->legacy : nullptr;
    }
    const auto found = streams_by_number_.find(number);
    return found != streams_by_number_.end() ? found->second.get() : nullptr;
}

void Runtime::on_error(std::uint32_t number, CUresult status, bool sticky, std::uint16_t, std::string_view text) {
    if (!text.empty()) log_line(text);
    if (const auto context = context_by_number(number)) (sticky ? context->sticky : context->deferred).store(status);
}

void Runtime::on_event_done(std::uint32_t number, std::uint32_t record) {
    std::lock_guard lock(numbers_mutex_);
    if (const auto found = events_by_number_.find(number); found != events_by_number_.end())
        found->second->done_record.store(record);
}

void Runtime::on_stream_done(std::uint32_t number, std::uint32_t watch) {
    std::lock_guard lock(numbers_mutex_);
    Stream* stream = stream_by_number(0, number);
    if (stream != nullptr && stream->watch.load() == watch) stream->done_work.store(stream->watched_work.load());
}

void Runtime::on_fence_done(std::uint64_t token) {
    progress_.complete(token);
    // Work that failed never sends its bytes; what is still open up to here will not come any more.
    if (const std::size_t closed = session_->transfers().close_up_to(token); closed != 0)
        session_->expected_arrived(closed);
}

void Runtime::on_credit(std::uint32_t context, std::uint32_t number, std::uint32_t frames,
                        std::uint64_t payload_bytes) {
    std::lock_guard lock(numbers_mutex_);
    if (Stream* stream = stream_by_number(context, number)) {
        stream->frames_out.fetch_sub(frames);
        stream->payload_bytes_out.fetch_sub(payload_bytes);
    }
}

std::uint32_t Runtime::open_pull(const void* source, std::uint64_t size_bytes, bool stays) {
    return open_pull(static_cast<const std::byte*>(source), {}, Box{size_bytes, 1, 1}, stays);
}

std::uint32_t Runtime::open_pull(const std::byte* base, const Pitches& pitches, const Box& box, bool stays) {
    const std::uint32_t number = next_number();
    std::lock_guard lock(numbers_mutex_);
    pulls_[number] = {base, pitches, box, stays};
    if (!stays) session_->expect_inbound();
    return number;
}

void Runtime::close_pull(std::uint32_t pull) {
    std::lock_guard lock(numbers_mutex_);
    pulls_.erase(pull);
}

void Runtime::when_done(std::uint64_t work, std::function<void()> then) {
    std::vector<Later> due;
    {
        std::lock_guard lock(numbers_mutex_);
        later_.push_back({work, std::move(then)});
        const std::uint64_t done = progress_.done();
        for (Later& later : later_)
            if (later.work <= done) due.push_back(std::move(later));
        std::erase_if(later_, [done](const Later& later) { return later.work <= done; });
    }
    for (Later& later : due) later.then();
    // So that the others are due when this is called the next time.
    (void)session_->send<wire::Fence>(0, 0, [&](auto& frame, std::byte*) { frame.token = progress_.submitted(); });
}

void Runtime::on_pull(std::uint32_t pull) {
    session_->post([this, pull] { send_pull(pull); });
}

void Runtime::on_output(std::uint32_t number, std::uint32_t kind, std::string_view text) {
    if (const auto context = context_by_number(number)) context->prints.store(true);
    if (!text.empty()) output_.add(kind, text);
}

void Runtime::on_host_call(std::uint32_t call, CUresult status) { callbacks_->on_call(call, status); }

// On the helper thread: the stream got to a page-locked copy; its source may be read now.
void Runtime::send_pull(std::uint32_t number) {
    Pull pull;
    {
        std::lock_guard lock(numbers_mutex_);
        const auto found = pulls_.find(number);
        if (found == pulls_.end()) return;
        pull = found->second;
        if (!pull.stays) pulls_.erase(found);
    }
    const bool is_packed = pull.pitches.is_packed(pull.box);
    std::vector<std::byte> packed;
    std::uint64_t offset = 0;
    while (const std::uint64_t size = next_piece(pull.box, offset, session_->payload_piece_bytes())) {
        const std::byte* bytes = pull.source + offset;
        if (!is_packed) {
            packed.resize(size);
            pack(packed.data(), pull.source, pull.pitches, pull.box, offset, size);
            bytes = packed.data();
        }
        const CUresult sent = session_->send_payload<wire::PullData>(0, {bytes, size}, [&](auto& frame) {
            frame.offset = offset;
            frame.pull = number;
            frame.size_bytes = static_cast<std::uint32_t>(size);
        });
        if (sent != CUDA_SUCCESS) break;
        offset += size;
    }
    session_->expected_arrived();
}

}  // namespace weft::shim
