// A launch: hands blocks to workers, keeps those that are not done, and collects the outcome.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>

#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint64_t kMaxSharedBytes = 227 * 1024;
// CUDA's own limit of local memory per thread, and one on register files that no compiler's output comes near.
constexpr uint64_t kMaxLocalBytes = 512 * 1024;
constexpr uint64_t kMaxRowsBytes = uint64_t{1} << 28;
constexpr size_t kKeptMemories = 4;
// How many unfinished blocks may be in memory. More are admitted when those look as if they wait for blocks that have
// not begun.
constexpr size_t kResidentBlocks = 16;
constexpr size_t kMostResidentBlocks = 4096;
constexpr uint32_t kQuantaBeforeMore = 8;

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

std::string_view name_of(AddressSpace space) {
    switch (space) {
        case AddressSpace::shared: return "shared";
        case AddressSpace::local:
        case AddressSpace::frame: return "local";
        case AddressSpace::kernel_param:
        case AddressSpace::param: return "param";
        case AddressSpace::constant: return "const";
        default: return "global";
    }
}

Status check_launch(const KernelImage& image, const LaunchConfig& config) {
    auto invalid = [](std::string text) { return Status::error(ErrorCode::invalid_argument, std::move(text)); };
    const Dim3 &grid = config.grid, &block = config.block;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0)
        return invalid("a dimension is 0");
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return invalid("the grid is too large");
    if (block.x > kMaxThreads || block.y > kMaxThreads || block.z > 64 ||
        uint64_t{block.x} * block.y * block.z > kMaxThreads) {
        return invalid("the block is too large: at most 1024 threads");
    }
    if (uint64_t{image.static_shared_bytes} + config.dynamic_shared_bytes > kMaxSharedBytes)
        return invalid("too much shared memory");
    if (image.frame_bytes > kMaxLocalBytes) return invalid("too much local memory per thread");
    if (image.rows_bytes > kMaxRowsBytes) return invalid("too many registers");
    if (config.parameters.size() < image.info.parameter_bytes) {
        return invalid("the parameters have " + std::to_string(config.parameters.size()) + " bytes, the kernel needs " +
                       std::to_string(image.info.parameter_bytes));
    }
    return Status::ok();
}

void fill_thread_ids(LaunchData& data) {
    for (auto& ids : data.tid) ids.assign(size_t{data.warps} * kWarpLanes, 0);
    for (uint32_t t = 0; t < data.threads; ++t) {
        data.tid[0][t] = t % data.block.x;
        data.tid[1][t] = t / data.block.x % data.block.y;
        data.tid[2][t] = t / data.block.x / data.block.y;
    }
}

}  // namespace

struct Worker::Impl {
    Context context;
    std::vector<std::unique_ptr<BlockMemory>> memories;
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<OpProfile> profile;
    uint64_t launch = 0;  // serial number of the launch whose ranges are cached

    std::unique_ptr<BlockMemory> memory() {
        if (memories.empty()) return std::make_unique<BlockMemory>();
        auto memory = std::move(memories.back());
        memories.pop_back();
        return memory;
    }
    std::unique_ptr<Block> block() {
        if (blocks.empty()) return std::make_unique<Block>();
        auto block = std::move(blocks.back());
        blocks.pop_back();
        return block;
    }
    void keep(std::unique_ptr<Block> block) {
        if (memories.size() < kKeptMemories) memories.push_back(std::move(block->memory));
        if (blocks.size() < kKeptMemories) blocks.push_back(std::move(block));
    }
};

Worker::Worker() : impl_(std::make_unique<Impl>()) {}
Worker::~Worker() = default;

struct Launch::Impl {
    std::shared_ptr<const Kernel> kernel;
    LaunchData data;
    bool cooperative = false;
    uint64_t total = 0;
    uint64_t serial = 0;

    mutable std::mutex mutex;
    uint64_t next = 0;
    uint64_t done = 0;
    uint32_t running = 0;
    std::deque<std::unique_ptr<Block>> suspended;
    Fault fault;
    bool stop = false;  // read by running blocks without the lock
    std::atomic<bool> finished{false};
    std::atomic<uint64_t> executed{0};
    bool profiles = false;
    std::vector<OpProfile> profile;  // by index of op

    bool may_admit() const {
        if (next == total) return false;
        size_t resident = suspended.size() + running;
        if (cooperative || resident < kResidentBlocks) return suspended.empty() || cooperative;
        return resident < kMostResidentBlocks && !suspended.empty() && suspended.front()->quanta >= kQuantaBeforeMore;
    }
    std::unique_ptr<Block> take(Worker::Impl& worker, bool& is_new);
    void give_back(Worker::Impl& worker, std::unique_ptr<Block> block, bool good);
    void record_fault(const Context& context, const Block& block);
    void finish_if_over();
    void enter(Context& context, Worker::Impl& worker);
};

// A block to run, or null when all are with other workers. Called with the lock held.
std::unique_ptr<Block> Launch::Impl::take(Worker::Impl& worker, bool& is_new) {
    is_new = false;
    if (stop) return nullptr;
    bool blocked = suspended.size() > 0 && next < total && suspended.front()->quanta >= kQuantaBeforeMore;
    if (may_admit() || (blocked && suspended.size() + running < kMostResidentBlocks)) {
        is_new = true;
        auto block = worker.block();
        block->index = next++;
        ++running;
        return block;
    }
    if (suspended.empty()) return nullptr;
    auto block = std::move(suspended.front());
    suspended.pop_front();
    ++running;
    return block;
}

void Launch::Impl::enter(Context& context, Worker::Impl& worker) {
    const KernelImage& image = *data.image;
    uint64_t epoch = data.memory ? data.memory->epoch() : 0;
    if (worker.launch != serial || context.epoch != epoch) {
        for (CachedRange& range : context.ranges) range = {};
        worker.launch = serial;
        context.epoch = epoch;
    }
    context.base[1] = image.constants;
    context.aux = image.aux.data();
    context.image = &image;
    context.params = data.params.data();
    context.param_bytes = static_cast<uint32_t>(data.params.size());
    context.memory = data.memory;
    context.shared_bytes = data.shared_bytes;
    context.local_stride = data.local_stride;
    context.fault = {};
    context.executed = 0;
    if (profiles) worker.profile.assign(image.ops.size(), {});
    context.profile = profiles ? worker.profile.data() : nullptr;
}

void Launch::Impl::record_fault(const Context& context, const Block& block) {
    if (fault.kind != FaultKind::none) return;
    const FaultRecord& record = context.fault;
    uint32_t thread = (context.warp ? context.warp->index * kWarpLanes : 0) + record.lane;
    fault.kind = record.kind;
    fault.kernel = data.image->name;
    fault.block = block.id;
    if (thread < data.tid[0].size()) fault.thread = {data.tid[0][thread], data.tid[1][thread], data.tid[2][thread]};
    fault.address = record.address;
    fault.size_bytes = record.size_bytes;
    fault.is_write = record.is_write;
    fault.space = std::string(name_of(record.space));
    fault.line = record.op ? record.op->line : 0;
}

void Launch::Impl::give_back(Worker::Impl& worker, std::unique_ptr<Block> block, bool good) {
    --running;
    executed.fetch_add(worker.context.executed, std::memory_order_relaxed);
    for (size_t i = 0; i < profile.size(); ++i) {
        profile[i].count += worker.profile[i].count;
        profile[i].lanes += worker.profile[i].lanes;
        profile[i].nanoseconds += worker.profile[i].nanoseconds;
    }
    if (!good) {
        record_fault(worker.context, *block);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    }
    if (good && !block->is_done()) {
        suspended.push_back(std::move(block));
    } else {
        done += block->is_done();
        worker.keep(std::move(block));
    }
    finish_if_over();
}

void Launch::Impl::finish_if_over() {
    if (done == total || (stop && running == 0)) {
        suspended.clear();
        finished.store(true, std::memory_order_release);
    }
}

Launch::Launch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Launch::~Launch() = default;

Result<std::shared_ptr<Launch>> Launch::create(std::shared_ptr<const Kernel> kernel, const LaunchConfig& config) {
    static std::atomic<uint64_t> serial{0};
    const KernelImage& image = kernel->image();
    if (Status status = check_launch(image, config); !status) return status;
    auto impl = std::make_unique<Impl>();
    LaunchData& data = impl->data;
    // The image lives as long as its kernel.
    data.image = std::shared_ptr<const KernelImage>(kernel, &image);
    data.grid = config.grid;
    data.block = config.block;
    data.params.assign(config.parameters.begin(), config.parameters.end());
    data.memory = config.memory;
    data.output = config.output;
    data.grid_id = config.grid_id;
    data.grid_workspace = config.grid_workspace;
    data.sm_count = config.sm_count;
    data.threads = config.block.x * config.block.y * config.block.z;
    data.warps = (data.threads + kWarpLanes - 1) / kWarpLanes;
    data.dynamic_shared_bytes = config.dynamic_shared_bytes;
    data.shared_bytes = uint64_t{image.static_shared_bytes} + config.dynamic_shared_bytes;
    uint64_t stack = image.has_unbounded_calls ? std::min<uint64_t>(config.stack_bytes, kMaxLocalBytes) : 0;
    data.local_stride = round_up(image.frame_bytes + stack, 16);
    fill_thread_ids(data);
    impl->cooperative = config.cooperative;
    impl->profiles = config.profile;
    if (config.profile) impl->profile.resize(image.ops.size());
    impl->total = uint64_t{config.grid.x} * config.grid.y * config.grid.z;
    impl->serial = serial.fetch_add(1, std::memory_order_relaxed) + 1;
    impl->kernel = std::move(kernel);
    return std::make_shared<Launch>(std::move(impl));
}

StepOutcome Launch::step(Worker& worker, uint64_t quantum) {
    Impl& impl = *impl_;
    Worker::Impl& own = worker.impl();
    bool progressed = false;
    while (quantum > 0) {
        bool is_new = false;
        std::unique_ptr<Block> block;
        {
            std::lock_guard lock(impl.mutex);
            if (impl.finished.load(std::memory_order_relaxed)) return StepOutcome::finished;
            block = impl.take(own, is_new);
        }
        if (!block) return progressed ? StepOutcome::progressed : StepOutcome::no_work;
        progressed = true;
        impl.enter(own.context, own);
        bool good = !is_new || block->start(impl.data, block->index, own.memory());
        if (!good) own.context.fault.kind = FaultKind::out_of_memory;
        own.context.shared = block->shared;
        good = good && block->run(own.context, quantum, impl.stop);
        std::lock_guard lock(impl.mutex);
        impl.give_back(own, std::move(block), good);
    }
    return impl.finished.load(std::memory_order_acquire) ? StepOutcome::finished : StepOutcome::progressed;
}

void Launch::cancel() {
    std::lock_guard lock(impl_->mutex);
    if (impl_->finished.load(std::memory_order_relaxed)) return;
    if (impl_->fault.kind == FaultKind::none) {
        impl_->fault.kind = FaultKind::cancelled;
        impl_->fault.kernel = impl_->data.image->name;
    }
    __atomic_store_n(&impl_->stop, true, __ATOMIC_RELAXED);
    impl_->finish_if_over();
}

bool Launch::finished() const { return impl_->finished.load(std::memory_order_acquire); }

uint32_t Launch::parallelism() const {
    std::lock_guard lock(impl_->mutex);
    if (impl_->finished.load(std::memory_order_relaxed)) return 0;
    return static_cast<uint32_t>(std::min<uint64_t>(impl_->total - impl_->next + impl_->suspended.size(), 1u << 16));
}

const Fault& Launch::fault() const { return impl_->fault; }
uint64_t Launch::thread_instructions() const { return impl_->executed.load(std::memory_order_relaxed); }

std::vector<LineProfile> Launch::profile() const {
    std::map<uint32_t, LineProfile> lines;
    for (size_t i = 0; i < impl_->profile.size(); ++i) {
        const OpProfile& op = impl_->profile[i];
        if (op.count == 0) continue;
        LineProfile& line = lines[impl_->data.image->ops[i].line];
        line.line = impl_->data.image->ops[i].line;
        line.warp_instructions += op.count;
        line.thread_instructions += op.lanes;
        line.nanoseconds += op.nanoseconds;
    }
    std::vector<LineProfile> result;
    for (auto& [number, line] : lines) result.push_back(line);
    return result;
}

std::string_view to_string(FaultKind kind) {
    switch (kind) {
        case FaultKind::none: return "success";
        case FaultKind::illegal_address: return "illegal address";
        case FaultKind::misaligned_address: return "misaligned address";
        case FaultKind::illegal_instruction: return "illegal instruction";
        case FaultKind::invalid_pc: return "invalid program counter";
        case FaultKind::trap: return "trap";
        case FaultKind::assert_failed: return "assertion failed";
        case FaultKind::stack_overflow: return "stack overflow";
        case FaultKind::deadlock: return "barrier that no thread can complete";
        case FaultKind::cancelled: return "cancelled";
        case FaultKind::out_of_memory: return "no host memory for a block";
    }
    return "unknown fault";
}

std::string Fault::describe() const {
    char text[256];
    std::string result(to_string(kind));
    if (kind == FaultKind::illegal_address || kind == FaultKind::misaligned_address) {
        std::snprintf(text, sizeof text, " 0x%" PRIx64 " (%s of %u bytes, %s)", address, is_write ? "write" : "read",
                      size_bytes, space.c_str());
        result += text;
    }
    result += " in kernel '" + kernel + "'";
    if (kind == FaultKind::cancelled || kind == FaultKind::none) return result;
    std::snprintf(text, sizeof text, ", block (%u,%u,%u), thread (%u,%u,%u), PTX line %u", block.x, block.y, block.z,
                  thread.x, thread.y, thread.z, line);
    return result + text;
}

}  // namespace weft::engine
