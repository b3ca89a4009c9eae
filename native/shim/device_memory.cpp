// Order of attempts in allocate: free space, space whose fence has passed, growth up to the cap, waiting for freed
// space, giving back idle extents and growing elsewhere (against fragmentation), then OUT_OF_MEMORY.
#include "shim/device_memory.h"

#include <algorithm>
#include <vector>

#include "shim/memory_pool.h"
#include "shim/session.h"

namespace weft::shim {
namespace {

constexpr std::uint64_t kGrowthBytes = 32u << 20;  // one wait for many small allocations

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

DeviceMemory::DeviceMemory(Session& session, Progress& progress, std::uint32_t device, Window window,
                           std::uint64_t cap_bytes)
    : session_(session),
      progress_(progress),
      device_(device),
      window_(window),
      cap_bytes_(cap_bytes),
      returned_(window.granularity_bytes),
      frontier_(window.base) {}

CUresult DeviceMemory::allocate(std::uint64_t size_bytes, std::uint32_t context, CUdeviceptr* address,
                                std::uint64_t alignment) {
    if (size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    std::unique_lock lock(mutex_);
    if (size_bytes > cap_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
    for (;;) {
        reclaim();
        if (const auto found = alignment == 0 ? heap_.allocate(size_bytes) : heap_.allocate(size_bytes, alignment)) {
            *address = *found;
            owners_.emplace(*found, Owner{context, nullptr});
            return session_.send<wire::MemNoteAlloc>(0, 0, [&](auto& frame, std::byte*) {
                frame.address = *found;
                frame.size_bytes = size_bytes;
            });
        }
        const CUresult grown = grow(heap_.round(size_bytes) + alignment);
        if (grown == CUDA_SUCCESS) continue;
        if (grown != CUDA_ERROR_OUT_OF_MEMORY) return grown;
        if (!freed_.empty()) {
            if (!wait_for_freed(lock)) return Session::kLost;
            continue;
        }
        if (!unmap_idle_extents()) return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

CUresult DeviceMemory::allocate_in_stream(std::uint64_t size_bytes, std::uint32_t context, std::uint32_t stream,
                                          const std::shared_ptr<MemoryPool>& pool, CUdeviceptr* address) {
    if (pool != nullptr && !pool->take(size_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const auto again = reuse(size_bytes, context, stream)) {
        *address = *again;
    } else if (const CUresult made = allocate(size_bytes, context, address); made != CUDA_SUCCESS) {
        if (pool != nullptr) pool->give(size_bytes);
        return made;
    }
    std::lock_guard lock(mutex_);
    owners_[*address].pool = pool;
    return CUDA_SUCCESS;
}

// Only the very same size: the other end knows the allocation's bounds, which stay as they are while work may use it.
std::optional<CUdeviceptr> DeviceMemory::reuse(std::uint64_t size_bytes, std::uint32_t context, std::uint32_t stream) {
    std::lock_guard lock(mutex_);
    std::size_t looked_at = 0;
    for (auto freed = freed_.end(); freed != freed_.begin() && looked_at++ < kReuseDepth;) {
        --freed;
        if (freed->stream != stream || freed->context != context || freed->asked_bytes != size_bytes) continue;
        const CUdeviceptr address = freed->address;
        freed_.erase(freed);
        heap_.attach(address, size_bytes);
        owners_.emplace(address, Owner{context, nullptr});
        return address;
    }
    return std::nullopt;
}

CUresult DeviceMemory::end(CUdeviceptr address, std::uint64_t stream) {
    std::lock_guard lock(mutex_);
    const auto range = heap_.find(address);
    if (!range || range->address != address) return CUDA_ERROR_INVALID_VALUE;
    const auto size = heap_.detach(address);
    const auto owner = owners_.find(address);
    if (owner->second.pool != nullptr) owner->second.pool->give(range->size);
    freed_.push_back({address, *size, progress_.submitted(), range->size, owner->second.context, stream});
    owners_.erase(owner);
    if (!reclaim()) request_fence();
    return CUDA_SUCCESS;
}

void DeviceMemory::free_all_of(std::uint32_t context) {
    std::vector<std::uint64_t> gone;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [address, owner] : owners_)
            if (owner.context == context) gone.push_back(address);
    }
    for (const std::uint64_t address : gone) (void)free(address);
}

std::uint32_t DeviceMemory::context_of(CUdeviceptr address) const {
    std::lock_guard lock(mutex_);
    const auto found = owners_.find(address);
    return found != owners_.end() ? found->second.context : 0;
}

std::optional<RangeHeap::Range> DeviceMemory::find(CUdeviceptr address) const {
    std::lock_guard lock(mutex_);
    return heap_.find(address);
}

std::uint64_t DeviceMemory::free_bytes() const {
    std::lock_guard lock(mutex_);
    // Freed memory counts as free: an allocation that needs it waits for it.
    const std::uint64_t taken = heap_.used_bytes() + module_bytes_;
    return taken < cap_bytes_ ? cap_bytes_ - taken : 0;
}

bool DeviceMemory::trim() {
    std::unique_lock lock(mutex_);
    while (!reclaim())
        if (!wait_for_freed(lock)) return false;
    return unmap_idle_extents();
}

void DeviceMemory::add_module_bytes(std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    module_bytes_ += static_cast<std::uint64_t>(bytes);
}

std::uint64_t DeviceMemory::room() const {
    const std::uint64_t taken = mapped_bytes_ + module_bytes_;
    return taken < cap_bytes_ ? (cap_bytes_ - taken) / window_.granularity_bytes * window_.granularity_bytes : 0;
}

// Makes freed memory whose work is complete usable again; true if none is left waiting.
bool DeviceMemory::reclaim() {
    if (freed_.empty()) return true;
    if (freed_.front().work > progress_.done()) session_.drain();
    while (!freed_.empty() && freed_.front().work <= progress_.done()) {
        const Freed freed = freed_.front();
        freed_.pop_front();
        (void)session_.send<wire::MemNoteFree>(0, 0, [&](auto& frame, std::byte*) { frame.address = freed.address; });
        heap_.release(freed.address, freed.size);
    }
    return freed_.empty();
}

void DeviceMemory::request_fence() {
    if (fence_sent_ > progress_.done()) return;  // one is on its way; the next allocation or free looks again
    (void)send_fence();
}

// The token is read with the append role held: no work with a smaller number can be sent later.
CUresult DeviceMemory::send_fence() {
    return session_.send<wire::Fence>(
        0, 0, [&](auto& frame, std::byte*) { frame.token = fence_sent_ = progress_.submitted(); });
}

bool DeviceMemory::wait_for_freed(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t work = freed_.back().work;
    if (fence_sent_ < work && send_fence() != CUDA_SUCCESS) return false;
    lock.unlock();
    const bool passed = session_.wait_until([&] { return progress_.done() >= work; });
    lock.lock();
    return passed;
}

// Where an extent for `size` more bytes goes. Next to the last one where possible, so that its free tail counts.
std::optional<std::uint64_t> DeviceMemory::place_extent(std::uint64_t size, std::uint64_t* tail) {
    *tail = heap_.free_tail(frontier_);
    if (size - std::min(size, *tail) <= window_.base + window_.size_bytes - frontier_) return frontier_;
    *tail = 0;
    return returned_.allocate(round_up(size, window_.granularity_bytes));
}

CUresult DeviceMemory::grow(std::uint64_t size) {
    std::uint64_t tail = 0;
    const auto at = place_extent(size, &tail);
    if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool at_frontier = *at == frontier_;
    const std::uint64_t needed = round_up(size - std::min(size, tail), window_.granularity_bytes);
    std::uint64_t extent = needed;
    if (at_frontier) {
        const std::uint64_t space = window_.base + window_.size_bytes - frontier_;
        extent = std::max(
            needed, std::min({kGrowthBytes, room(), space / window_.granularity_bytes * window_.granularity_bytes}));
    }
    CUresult mapped = CUDA_ERROR_OUT_OF_MEMORY;
    if (extent <= room()) {
        const Reply reply = session_.call<wire::MemMap>(0, 0, [&](auto& frame, std::byte*) {
            frame.device = device_;
            frame.address = *at;
            frame.size_bytes = extent;
        });
        mapped = reply.status;
    }
    if (mapped != CUDA_SUCCESS) {
        if (!at_frontier) {
            const auto returned = returned_.detach(*at);
            returned_.release(*at, *returned);
        }
        return mapped;
    }
    if (at_frontier)
        frontier_ += extent;
    else
        (void)returned_.detach(*at);
    extents_.emplace(*at, extent);
    mapped_bytes_ += extent;
    heap_.add(*at, extent);
    return CUDA_SUCCESS;
}

// Extents that hold no allocation are given back, so that their share of the cap can grow somewhere contiguous.
bool DeviceMemory::unmap_idle_extents() {
    bool any = false;
    for (auto extent = extents_.begin(); extent != extents_.end();) {
        const auto [address, size] = *extent;
        if (!heap_.remove(address, size)) {
            ++extent;
            continue;
        }
        (void)session_.send<wire::MemUnmap>(0, 0, [&, a = address, s = size](auto& frame, std::byte*) {
            frame.device = device_;
            frame.address = a;
            frame.size_bytes = s;
        });
        mapped_bytes_ -= size;
        if (address + size == frontier_)
            frontier_ = address;
        else
            returned_.add(address, size);
        extent = extents_.erase(extent);
        any = true;
    }
    return any;
}

}  // namespace weft::shim
