// Devices, the address window and contexts of a session. See session.h.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "executor/inventory.h"
#include "executor/session.h"
#include "gen/cuda_names.h"

namespace weft::executor {

namespace {

constexpr std::uint64_t kMaxWindowEnd = 1ull << 47;  // user space of x86-64 and of aarch64 with 48-bit addresses
constexpr unsigned kContextFlags = CU_CTX_SCHED_MASK | CU_CTX_LMEM_RESIZE_TO_MAX;
constexpr std::size_t kMaxLogLines = 256, kMaxLogBytes = 4096;

std::string host_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace

Status Session::open() {
    if (const CUresult result = driver_.cuInit(0); result != CUDA_SUCCESS)
        return Status::error(ErrorCode::unavailable, "cuInit: " + name_of(result));
    driver_.cuDriverGetVersion(&driver_version_);
    if (options_.devices.empty() || options_.devices.size() > wire::kMaxDevices) {
        return Status::error(ErrorCode::invalid_argument, "a session has 1 to 64 devices");
    }
    for (std::size_t i = 0; i < options_.devices.size(); ++i) {
        const int ordinal = options_.devices[i];
        Result<wire::DeviceInfo> info = describe_device(driver_, ordinal);
        if (!info) return info.take_status();
        DeviceState device;
        driver_.cuDeviceGet(&device.device, ordinal);
        device.granularity = info->granularity_bytes;
        const std::vector<std::uint64_t>& caps = options_.cap_bytes;
        const std::uint64_t cap = caps.empty() ? 0 : caps[std::min(i, caps.size() - 1)];
        if (cap != 0) info->total_memory_bytes = std::min(info->total_memory_bytes, cap);
        device.account = MemoryAccount(info->total_memory_bytes);
        device.account.share(options_.usage, i);
        devices_.push_back(std::move(device));
        device_infos_.push_back(std::move(*info));
    }
    loader_ = std::make_unique<ModuleLoader>(driver_, options_.cache_directory, options_.cache_bytes);
    register_logs();
    return Status::ok();
}

void Session::register_logs() {
    if (driver_.cuLogsRegisterCallback == nullptr) return;
    const CUlogsCallback callback = [](void* data, CUlogLevel level, char* message, std::size_t length) {
        auto* session = static_cast<Session*>(data);
        std::lock_guard lock(session->log_mutex_);
        if (session->logs_.size() >= kMaxLogLines) return;
        const std::string_view text(message, strnlen(message, std::min(length, kMaxLogBytes)));
        session->logs_.emplace_back(level == CU_LOG_LEVEL_ERROR ? 0 : 1,
                                    text.substr(0, text.find_last_not_of("\n\r") + 1));
        session->has_logs_.store(true);
        session->channel_.notify();
    };
    if (driver_.cuLogsRegisterCallback(callback, this, &log_handle_) != CUDA_SUCCESS) log_handle_ = nullptr;
}

// ---------------------------------------------------------------------------------------------------------- greeting

Outcome Session::on_hello(Arrival& arrival) {
    const auto hello = fields_of<wire::Hello>(arrival);
    if (is_greeted_) return bad_frame(arrival, "a second HELLO");
    if (hello.protocol < wire::kProtocolOldest || hello.protocol > wire::kProtocolVersion) {
        fail(EndReason::Kind::refused, "the client speaks protocol " + std::to_string(hello.protocol) +
                                           ", this executor " + std::to_string(wire::kProtocolOldest) + " to " +
                                           std::to_string(wire::kProtocolVersion));
        return Outcome::submitted;
    }
    log_event(LogLevel::info, "session_hello", {{"session", options_.name}, {"client_process", hello.process_id}});
    propose_window(arrival, hello.window_base, hello.window_stride_bytes);
    return Outcome::submitted;
}

Outcome Session::on_window(Arrival& arrival) {
    const auto window = fields_of<wire::Window>(arrival);
    if (is_greeted_) return bad_frame(arrival, "another window after one was agreed on");
    propose_window(arrival, window.window_base, window.window_stride_bytes);
    return Outcome::submitted;
}

void Session::propose_window(const Arrival& arrival, std::uint64_t base, std::uint64_t stride_bytes) {
    const std::uint64_t granularity =
        std::max_element(devices_.begin(), devices_.end(), [](const auto& a, const auto& b) {
            return a.granularity < b.granularity;
        })->granularity;
    const bool fits = base != 0 && stride_bytes != 0 && base % granularity == 0 && stride_bytes % granularity == 0 &&
                      base < kMaxWindowEnd && stride_bytes <= (kMaxWindowEnd - base) / devices_.size();
    if (!fits) return void(bad_frame(arrival, "an impossible address window"));
    const bool reserved = reserve_windows(driver_, devices_.size(), base, stride_bytes);
    if (reserved) {
        is_greeted_ = true;
        window_base_ = base;
        window_stride_bytes_ = stride_bytes;
        for (std::size_t i = 0; i < devices_.size(); ++i)
            devices_[i].extents.set_window(base + i * stride_bytes, stride_bytes);
    }
    wire::HelloReply hello;
    hello.protocol = wire::kProtocolVersion;
    hello.driver_version = driver_version_;
    hello.executor_version = options_.version;
    hello.path = device_infos_.front().name + " on " + host_name();
    hello.devices = device_infos_;
    reply(arrival, reserved ? CUDA_SUCCESS : CUDA_ERROR_INVALID_ADDRESS_SPACE, wire::encode(hello));
}

Outcome Session::on_goodbye(Arrival&) {
    fail(EndReason::Kind::goodbye, "the client said goodbye");
    return Outcome::submitted;
}

// ---------------------------------------------------------------------------------------------------------- contexts

ContextState* Session::find_context(std::uint32_t number) {
    if (last_context_ != nullptr && last_context_->number == number) [[likely]]
        return last_context_;
    const auto found = contexts_.find(number);
    if (found == contexts_.end()) return nullptr;
    return last_context_ = found->second.get();
}

void Session::set_current(ContextState& context) {
    if (current_ == context.handle) [[likely]]
        return;
    if (driver_.cuCtxSetCurrent(context.handle) == CUDA_SUCCESS) current_ = context.handle;
}

bool Session::make_any_current() {
    for (auto& [number, context] : contexts_) {
        if (context->legacy == nullptr) continue;  // not made yet
        set_current(*context);
        return true;
    }
    return false;
}

Outcome Session::on_ctx_create(Arrival& arrival) {
    const auto create = fields_of<wire::CtxCreate>(arrival);
    if (arrival.header.context == 0 || contexts_.contains(arrival.header.context))
        return bad_frame(arrival, "context number in use");
    if (create.device >= devices_.size() || create.primary > 1) return bad_frame(arrival, "no such device");
    if (contexts_.size() >= kMaxContexts) {
        refuse(arrival, CUDA_ERROR_OUT_OF_MEMORY, "too many contexts");
        return Outcome::submitted;
    }
    // A primary context must not be retained while it is being reset.
    if (dying_contexts_ != 0) {
        backlog_.push_front({{arrival.frame.begin(), arrival.frame.end()}, {}});
        backlog_bytes_ += arrival.frame.size() + sizeof(StoredFrame);
        waits_for_dying_ = true;
        ++paused_;
        return Outcome::submitted;
    }
    auto context = std::make_shared<ContextState>();
    context->number = arrival.header.context;
    context->device = create.device;
    context->is_primary = create.primary != 0;
    context->creation = CUDA_ERROR_INVALID_CONTEXT;
    contexts_[context->number] = context;
    // Frames that follow may be of this context: they wait until it is there.
    ++paused_;
    const CUdevice device = devices_[create.device].device;
    const unsigned flags = create.flags & kContextFlags;
    helper_->submit(
        [this, context, device, flags] {
            if (context->is_primary) {
                (void)driver_.cuDevicePrimaryCtxSetFlags_v2(device, flags);
                context->creation = driver_.cuDevicePrimaryCtxRetain(&context->handle, device);
            } else {
                context->creation = driver_.cuCtxCreate_v2(&context->handle, flags, device);
            }
            if (context->creation != CUDA_SUCCESS) context->handle = nullptr;
            (void)driver_.cuCtxSetCurrent(nullptr);
        },
        [this, context] {
            --paused_;
            open_context(*context);
        });
    return Outcome::submitted;
}

void Session::open_context(ContextState& context) {
    if (context.creation != CUDA_SUCCESS)
        return push_error(context.number, context.creation, wire::CtxCreate::kOpcode, {});
    context.events = std::make_shared<EventPool>(driver_);
    context.legacy = std::make_unique<StreamState>(context, 0, nullptr, ParkingQueue::Role::legacy, &channel_);
}

Outcome Session::on_ctx_destroy(Arrival& arrival) {
    const auto destroy = fields_of<wire::CtxDestroy>(arrival);
    const auto found = contexts_.find(arrival.header.context);
    std::shared_ptr<ContextState> context = found->second;
    contexts_.erase(found);
    last_context_ = nullptr;
    if (context->handle == nullptr) return Outcome::submitted;
    ++dying_contexts_;
    ending_.push_back(context);
    std::vector<EventRef> pending;
    (void)collect_pending(*context, &pending);
    completion_.add_wait(
        std::move(pending), [this, context, reset = destroy.reset != 0](CUresult) { close_context(context, reset); },
        Clock::now());
    return Outcome::submitted;
}

// All work of the context is complete (or has failed).
void Session::close_context(std::shared_ptr<ContextState> context, bool reset) {
    std::erase(ending_, context);
    set_current(*context);
    drop_streams(*context);
    drop_graphs(*context);
    events_.remove_if([&](const EventState& event) { return event.context == context.get(); });
    modules_.remove_if([&](const ModuleState& module) {
        if (module.context != context.get()) return false;
        devices_[context->device].account.give(module.global_bytes);
        return true;
    });
    completion_.tell_implied();
    completion_.let_go();
    drop_reader(*context);
    forget_arrays(*context);
    context->events->close();
    host_memory_.context_ends(context->handle);
    (void)driver_.cuCtxSetCurrent(nullptr);
    current_ = nullptr;
    const CUdevice device = devices_[context->device].device;
    run_memory_job(
        [this, context, device, reset] {
            if (!context->is_primary) {
                (void)driver_.cuCtxDestroy_v2(context->handle);
                return;
            }
            (void)driver_.cuDevicePrimaryCtxRelease_v2(device);
            if (reset) (void)driver_.cuDevicePrimaryCtxReset_v2(device);
        },
        [this] {
            if (--dying_contexts_ == 0 && std::exchange(waits_for_dying_, false)) --paused_;
        });
}

// Takes the context's streams out of every list; what they held is free.
void Session::drop_streams(ContextState& context) {
    const auto is_of_context = [&](const StreamState* stream) { return &stream->context == &context; };
    std::erase_if(looked_at_, is_of_context);
    std::erase_if(to_wake_, is_of_context);
    std::erase_if(copies_out_, [&](const CopyOut& copy) { return is_of_context(copy.stream); });
    std::erase_if(pulls_, [&](const auto& pull) { return is_of_context(pull.second.stream); });
    std::erase_if(host_calls_, [&](const auto& call) { return is_of_context(call.second.stream); });
    std::erase_if(dying_, [&](const auto& stream) { return is_of_context(stream.get()); });
    parking_.clear(context.legacy->queue);
    for (StreamState* stream : context.streams) {
        parking_.clear(stream->queue);
        streams_.remove(stream->number);
    }
    context.streams.clear();
    context.legacy.reset();
}

void Session::release_context(ContextState& context) {
    if (context.handle == nullptr || context.legacy == nullptr) return;
    set_current(context);
    drop_streams(context);
    drop_graphs(context);
    events_.remove_if([&](const EventState& event) { return event.context == &context; });
    drop_reader(context);
    forget_arrays(context);
    context.events->close();
    host_memory_.context_ends(context.handle);
    (void)driver_.cuCtxSetCurrent(nullptr);
    current_ = nullptr;
    if (context.is_primary) {
        (void)driver_.cuDevicePrimaryCtxRelease_v2(devices_[context.device].device);
    } else {
        (void)driver_.cuCtxDestroy_v2(context.handle);
    }
}

// The process may live on after a session (tests, replay): give everything back without telling the client.
void Session::release_everything() {
    for (auto& [number, context] : contexts_) ending_.push_back(context);
    contexts_.clear();
    for (const auto& context : ending_) {
        if (context->handle == nullptr) continue;
        set_current(*context);
        (void)driver_.cuCtxSynchronize();
    }
    completion_.clear();
    copies_out_.clear();
    pulls_.clear();
    host_calls_.clear();
    for (const auto& context : ending_) release_context(*context);
    ending_.clear();
    if (!is_greeted_) return;
    release_virtual_memory();
    for (const DeviceState& device : devices_) {
        for (const auto& [address, extent] : device.extents.extents())
            (void)unmap_extent(driver_, address, extent.size_bytes, extent.handle);
    }
    free_windows(driver_, devices_.size(), window_base_, window_stride_bytes_);
}

}  // namespace weft::executor
