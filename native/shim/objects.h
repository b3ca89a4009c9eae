// The CUDA objects that the shim keeps: devices, contexts, streams, events, modules, functions. Numbers name them on
// the wire. Ownership: handle tables own what the program made; a context owns its modules and streams and takes them
// along when it dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gen/cuda_abi.h"
#include "graph/capture.h"
#include "shim/handle_table.h"
#include "shim/read_ahead.h"
#include "shim/memory_pool.h"
#include "wire/describe.h"

namespace weft::shim {

class DeviceMemory;
struct Context;
struct Module;

struct Device {
    int ordinal = 0;
    wire::DeviceInfo info;
    std::unique_ptr<DeviceMemory> memory;
    std::mutex primary_mutex;
    std::shared_ptr<Context> primary;  // made at the first retain, kept (inactive) for ever: its handle never changes
    int primary_retained = 0;
    unsigned primary_flags = 0;
    DevicePools pools;
};

struct Stream {
    std::uint32_t number = 0;  // 0: the legacy default stream of its context
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t id = 0;
    // Credit: what the executor still holds of this stream. Raised by senders, lowered by CREDIT frames.
    std::atomic<std::uint32_t> frames_out{0};
    std::atomic<std::uint64_t> payload_bytes_out{0};
    // Numbers of the work that was last sent to this stream and last known to be complete.
    std::atomic<std::uint64_t> last_work{0};
    std::atomic<std::uint64_t> done_work{0};
    std::atomic<std::uint32_t> watch{0};  // number of the last watch sent; 0: none
    std::atomic<std::uint64_t> watched_work{0};
    std::uint64_t unified_epoch = 0;  // pages of unified memory that its work waits for; under that one's lock
    std::uint64_t handle = 0;
    graph::StreamCapture capturing;
    std::unordered_map<int, CUstreamAttrValue> attributes;  // by id; guarded by the context's mutex
};

struct Event {
    std::uint32_t number = 0;
    Context* context = nullptr;
    unsigned flags = 0;
    std::atomic<std::uint32_t> record{0};       // how often it was recorded
    std::atomic<std::uint32_t> done_record{0};  // the newest record known to be complete
    std::atomic<std::uint32_t> watched_record{0};
    std::atomic<std::uint64_t> work{0};    // work number of the newest record
    std::atomic<std::uint32_t> stream{0};  // number of the stream of the newest record
    graph::EventCapture captured;
};

struct Array {
    std::uint32_t number = 0;
    Context* context = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    std::uint64_t charged_bytes = 0;  // of the device's memory
    std::uint64_t handle = 0;
};

// A texture or surface object; its handle is the driver's, as kernels get it.
struct Texture {
    Context* context = nullptr;
    bool is_surface = false;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC description{};
};

struct Function {
    Module* module = nullptr;
    std::uint32_t index = 0;
    const wire::FunctionInfo* info = nullptr;
    std::uint32_t parameter_bytes = 0;
    std::atomic<int> max_dynamic_shared_bytes{0};
    std::atomic<int> carveout{-1};
    std::atomic<std::uint64_t> handle{0};  // CUfunction, made when the program asks for it
};

struct Module {
    std::uint32_t number = 0;
    Context* context = nullptr;
    wire::ModuleReply description;
    std::vector<std::shared_ptr<Function>> functions;  // in the order of description.functions
    std::unordered_map<std::string_view, Function*> by_name;
    std::vector<wire::AddressRange>
        reserved;  // address ranges of its globals, taken out of this process's address space
    std::uint64_t global_bytes = 0;
    std::uint64_t handle = 0;
};

struct Context {
    std::uint32_t number = 0;
    Device* device = nullptr;
    unsigned flags = 0;
    bool primary = false;
    std::atomic<bool> active{false};
    std::uint64_t handle = 0;
    std::uint64_t id = 0;
    std::atomic<int> sticky{0};       // CUresult that every call returns from now on
    std::atomic<int> deferred{0};     // CUresult of a failed asynchronous call, returned once
    std::atomic<bool> prints{false};  // has kernels that print: what they print comes with synchronisations
    Stream legacy;                    // stream number 0
    ReadAhead read_ahead;
    std::mutex mutex;                                                    // guards the lists
    std::unordered_map<std::uint32_t, std::shared_ptr<Stream>> streams;  // by number
    std::unordered_map<std::uint32_t, std::shared_ptr<Module>> modules;
    std::vector<std::uint64_t> arrays;  // handles
};

// The error that a call of this context has to return, if any.
inline CUresult take_error(Context& context) {
    if (const int sticky = context.sticky.load(std::memory_order_relaxed); sticky != 0) [[unlikely]]
        return static_cast<CUresult>(sticky);
    if (context.deferred.load(std::memory_order_relaxed) == 0) [[likely]]
        return CUDA_SUCCESS;
    return static_cast<CUresult>(context.deferred.exchange(0));
}

}  // namespace weft::shim
