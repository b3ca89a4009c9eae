// Stream-ordered allocation, and the pools it is accounted to.
#include <algorithm>
#include <cstring>

#include "swgpu/driver/api.h"
#include "swgpu/driver/memory.h"
#include "swgpu/driver/memory_pool.h"

using namespace weft::swdriver;

namespace weft::swdriver {

bool MemoryPool::take(std::uint64_t bytes) {
    const std::uint64_t used = used_bytes_.fetch_add(bytes, std::memory_order_acq_rel) + bytes;
    if (max_bytes_ != 0 && used > max_bytes_) {
        give_back(bytes);
        return false;
    }
    std::uint64_t high = used_high_bytes_.load(std::memory_order_relaxed);
    while (high < used && !used_high_bytes_.compare_exchange_weak(high, used)) {
    }
    return true;
}

CUresult MemoryPool::get(CUmemPool_attribute attribute, void* value) const {
    const auto put_int = [&](int number) { std::memcpy(value, &number, sizeof number); };
    const auto put_bytes = [&](cuuint64_t bytes) { std::memcpy(value, &bytes, sizeof bytes); };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: put_int(reuse_[attribute - 1].load()); break;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: put_bytes(release_threshold_.load()); break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: put_bytes(used_bytes_.load()); break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: put_bytes(used_high_bytes_.load()); break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult MemoryPool::set(CUmemPool_attribute attribute, const void* value) {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            reuse_[attribute - 1].store(*static_cast<const int*>(value) != 0 ? 1 : 0);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            release_threshold_.store(*static_cast<const cuuint64_t*>(value));
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:  // may only be reset
            if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
            used_high_bytes_.store(used_bytes_.load());
            return CUDA_SUCCESS;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace weft::swdriver

namespace {

// Gives device memory back when the stream gets there, unless it was freed meanwhile and the address given to someone
// else.
struct FreeOperation final : WorkOperation {
    explicit FreeOperation(const Allocation& allocation) : address(allocation.start), id(allocation.id) {}
    CUresult run() override {
        const auto allocation = driver().space.find(address);
        if (allocation && allocation->id == id) free_device(address, MemoryKind::device);
        return CUDA_SUCCESS;
    }
    const std::uint64_t address, id;
};

// The device, and its default pool, which is made at first use. Its current pool is another one after
// cuDeviceSetMemPool.
CUresult pools_of(CUdevice number, const void* out, Device** device) {
    WEFT_TRY(check_ready());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = find_device(number);
    if (*device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock((*device)->pool_mutex);
    if (!(*device)->default_pool) {
        (*device)->default_pool = Ref<MemoryPool>(new MemoryPool(number, 0));
        HandleTable::instance().insert((*device)->default_pool.get());
        (*device)->current_pool = (*device)->default_pool;
    }
    return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* out, size_t size, const Ref<MemoryPool>& pool, Stream& stream) {
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    Device& device = *driver().devices[static_cast<std::size_t>(pool->device())];
    if (!pool->take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    auto address = allocate_device(device, stream.context(), size, MemoryKind::device, pool->handle());
    if (!address) {  // frees that are queued in this stream come before this allocation
        driver().scheduler.wait_idle(stream);
        address = allocate_device(device, stream.context(), size, MemoryKind::device, pool->handle());
    }
    if (!address) {
        pool->give_back(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = *address;
    return CUDA_SUCCESS;
}

CUresult check_location(const CUmemLocation& location) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    return find_device(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

WEFT_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    Device* device = nullptr;
    WEFT_TRY(pools_of(stream->context().device(), out, &device));
    if (stream->is_capturing()) {
        // Its memory is there at once and lives as long as the graph.
        const auto address = allocate_device(*device, stream->context(), size, MemoryKind::device);
        if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
        weft::graph::AllocateWork work;
        work.parameters.bytesize = size;
        work.parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        work.parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {stream->context().device()}};
        work.parameters.dptr = *out = *address;
        return weft::graph::capture_work(stream->capturing, work);
    }
    Ref<MemoryPool> pool;
    {
        std::lock_guard lock(device->pool_mutex);
        pool = device->current_pool;
    }
    return allocate(out, size, pool, *stream);
}

WEFT_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool_handle, CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const Ref<MemoryPool> pool = find<MemoryPool>(pool_handle);
    return pool ? allocate(out, size, pool, *stream) : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    WEFT_ENTER(entry);
    Ref<Stream> stream;
    WEFT_TRY(resolve_stream(entry, handle, &stream));
    const auto allocation = driver().space.find(address);
    if (!allocation || allocation->start != address || allocation->kind != MemoryKind::device)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->is_capturing()) return weft::graph::capture_work(stream->capturing, weft::graph::FreeWork{address});
    driver().scheduler.enqueue(*stream, std::make_unique<FreeOperation>(*allocation), true);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(pools_of(number, out, &device));
    *out = device->default_pool->handle_as<CUmemoryPool>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice number) {
    Device* device = nullptr;
    WEFT_TRY(pools_of(number, out, &device));
    std::lock_guard lock(device->pool_mutex);
    *out = device->current_pool->handle_as<CUmemoryPool>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuDeviceSetMemPool(CUdevice number, CUmemoryPool handle) {
    Device* device = nullptr;
    WEFT_TRY(pools_of(number, &device, &device));
    Ref<MemoryPool> pool = find<MemoryPool>(handle);
    if (!pool || pool->device() != number) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->pool_mutex);
    std::swap(device->current_pool, pool);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    WEFT_TRY(check_ready());
    if (out == nullptr || properties == nullptr || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    WEFT_TRY(check_location(properties->location));
    const Ref<MemoryPool> pool(new MemoryPool(properties->location.id, properties->maxSize));
    HandleTable::instance().insert(pool.get());
    *out = pool->handle_as<CUmemoryPool>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    WEFT_TRY(check_ready());
    const Ref<MemoryPool> pool = find<MemoryPool>(handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    Device& device = *driver().devices[static_cast<std::size_t>(pool->device())];
    std::lock_guard lock(device.pool_mutex);
    if (device.default_pool == pool) return CUDA_ERROR_INVALID_VALUE;
    if (device.current_pool == pool) device.current_pool = device.default_pool;
    HandleTable::instance().remove<MemoryPool>(handle);  // what was allocated from it stays
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    WEFT_TRY(check_ready());
    const Ref<MemoryPool> pool = find<MemoryPool>(handle);
    return pool && value != nullptr ? pool->get(attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    WEFT_TRY(check_ready());
    const Ref<MemoryPool> pool = find<MemoryPool>(handle);
    return pool && value != nullptr ? pool->set(attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
    WEFT_TRY(check_ready());
    return find<MemoryPool>(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// All devices share the address space, so each may use the memory of every pool.
WEFT_API CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
    WEFT_TRY(check_ready());
    if (flags == nullptr || location == nullptr || !find<MemoryPool>(handle)) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(check_location(*location));
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions, size_t count) {
    WEFT_TRY(check_ready());
    if (descriptions == nullptr || !find<MemoryPool>(handle)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) WEFT_TRY(check_location(descriptions[i].location));
    return CUDA_SUCCESS;
}
