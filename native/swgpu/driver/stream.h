// Streams, events and the operations in them, as data of the scheduler. All mutable state here is guarded by the
// scheduler's lock unless it is atomic. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gen/cuda_abi.h"
#include "graph/capture.h"
#include "swgpu/driver/object.h"
#include "swgpu/engine/engine.h"

namespace weft::swdriver {

class Context;
class Stream;

// One record of an event: where in which stream it lies, and when the stream got there.
class Marker final : public Object {
  public:
    Marker() : Object(Kind::event) {}
    std::atomic<bool> done{false};
    std::uint64_t time_ns = 0;  // valid once done
    Ref<Stream> stream;         // set at enqueue, with sequence
    std::uint64_t sequence = 0;
    std::vector<Ref<Stream>> waiting;  // streams whose head waits for this record
};

struct Dependency {
    Ref<Stream> stream;
    std::uint64_t sequence = 0;
};

struct Operation {
    enum class Type : std::uint8_t { work, kernel, record, wait_event, host_function, wait_value };
    explicit Operation(Type type) : type(type) {}
    virtual ~Operation() = default;

    const Type type;
    bool runs_after_error = false;  // host callbacks that are told of the error
    std::uint64_t sequence = 0;
    Operation* next = nullptr;
    std::vector<Dependency> after;  // ends of other streams this must follow (legacy default stream)
};

// Something short that any worker does: a copy, a fill, giving memory back.
struct WorkOperation : Operation {
    WorkOperation() : Operation(Type::work) {}
    virtual CUresult run() = 0;
};

struct KernelOperation final : Operation {
    KernelOperation() : Operation(Type::kernel) {}
    std::shared_ptr<engine::Launch> launch;
    Ref<Object> module;               // keeps code and globals
    std::shared_ptr<void> workspace;  // of a cooperative grid
    Ref<Stream> stream;
    unsigned steppers = 0;  // workers inside step()
    bool stepped = false;   // has had its first step
    bool finished = false;
    bool queued = false;  // in the scheduler's list of kernels
};

struct RecordOperation final : Operation {
    explicit RecordOperation(Ref<Marker> record) : Operation(Type::record), marker(std::move(record)) {}
    Ref<Marker> marker;
};

struct WaitEventOperation final : Operation {
    explicit WaitEventOperation(Ref<Marker> record) : Operation(Type::wait_event), marker(std::move(record)) {}
    Ref<Marker> marker;
};

struct HostFunctionOperation final : Operation {
    HostFunctionOperation() : Operation(Type::host_function) {}
    CUhostFn function = nullptr;          // cuLaunchHostFunc
    CUstreamCallback callback = nullptr;  // cuStreamAddCallback
    CUstream stream_handle = nullptr;
    void* data = nullptr;
    Ref<Stream> stream;
};

struct WaitValueOperation final : Operation {
    WaitValueOperation() : Operation(Type::wait_value) {}
    std::uint64_t address = 0;
    std::uint64_t value = 0;
    unsigned flags = 0;
    bool wide = false;
    bool satisfied() const;
};

class Stream final : public Object {
  public:
    static constexpr Kind kKind = Kind::stream;
    enum class Role : std::uint8_t { legacy, blocking, non_blocking };
    Stream(Ref<Context> context, Role role, unsigned flags, int priority, std::uint64_t id);
    ~Stream() override;

    Context& context() const { return *context_; }
    Role role() const { return role_; }
    unsigned flags() const { return flags_; }
    int priority() const { return priority_; }
    std::uint64_t id() const { return id_; }
    bool idle() const { return completed.load(std::memory_order_acquire) == enqueued.load(std::memory_order_acquire); }

    graph::StreamCapture capturing;
    bool is_capturing() const { return graph::is_any_capturing() && capturing.capture != nullptr; }
    // Hints that programs set and ask for.
    std::mutex attributes_mutex;
    std::map<int, CUstreamAttrValue> attributes;

    // The scheduler's part.
    std::atomic<std::uint64_t> enqueued{0};
    std::atomic<std::uint64_t> completed{0};
    std::atomic<std::uint32_t> tick{0};  // moves with completed; waiting threads sleep on it
    Operation* head = nullptr;
    Operation* tail = nullptr;
    bool active = false;                  // the head is being executed
    std::vector<Ref<Stream>> dependents;  // streams whose head waits for this one to get on

  private:
    const Ref<Context> context_;
    const Role role_;
    const unsigned flags_;
    const int priority_;
    const std::uint64_t id_;
};

class Event final : public Object {
  public:
    static constexpr Kind kKind = Kind::event;
    Event(Ref<Context> context, unsigned flags);
    ~Event() override;
    Context& context() const { return *context_; }
    unsigned flags() const { return flags_; }
    graph::EventCapture captured;
    Ref<Marker> marker;  // of the last record; null: never recorded. Under the scheduler's lock.

  private:
    const Ref<Context> context_;
    const unsigned flags_;
};

}  // namespace weft::swdriver
