// Stream-ordered allocation. Memory is there at once, which no stream order forbids; what is freed in a stream can be
// had again in the same stream at once, and elsewhere when the work sent before is complete.
#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult ready() { return Runtime::get()->session().is_lost() ? Session::kLost : CUDA_SUCCESS; }

CUresult make_pool(int device, std::uint64_t max_bytes, std::uint64_t* handle) {
    *handle = Runtime::get()->pools.insert(std::make_shared<MemoryPool>(device, max_bytes));
    return *handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The device's pools, with the default one made. Their mutex is held on success.
CUresult lock_pools(CUdevice ordinal, DevicePools** pools, std::unique_lock<std::mutex>* lock) {
    if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
    Device* device = Runtime::get()->device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pools = &device->pools;
    *lock = std::unique_lock(device->pools.mutex);
    if (device->pools.standard != 0) return CUDA_SUCCESS;
    const CUresult made = make_pool(ordinal, 0, &device->pools.standard);
    device->pools.current = device->pools.standard;
    return made;
}

CUresult give_pool(CUdevice ordinal, bool current, CUmemoryPool* pool) {
    DevicePools* pools;
    std::unique_lock<std::mutex> lock;
    if (const CUresult result = lock_pools(ordinal, &pools, &lock); result != CUDA_SUCCESS) return result;
    *pool = reinterpret_cast<CUmemoryPool>(current ? pools->current : pools->standard);
    return CUDA_SUCCESS;
}

CUresult find_target(CUstream handle, Stream** stream) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    return find_stream(*context, handle, stream);
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle, const Stream& stream) {
    const std::shared_ptr<MemoryPool> pool = Runtime::get()->pools.share(handle);
    if (pool == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    Device& device = *Runtime::get()->device(pool->device());
    return device.memory->allocate_in_stream(bytes, stream.context->number, stream.number, pool, address);
}

CUresult check_location(const CUmemLocation& location) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    return Runtime::get()->device(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult check_location(const CUmemLocation& location, CUmemAllocationType type) {
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? check_location(location) : CUDA_ERROR_NOT_SUPPORTED;
}

// A node of the graph that the stream captures: its memory is there at once and lives as long as the graph.
CUresult capture_allocation(Stream& stream, std::size_t bytes, CUdeviceptr* address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    Context& context = *stream.context;
    graph::AllocateWork work;
    work.parameters.bytesize = bytes;
    work.parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    work.parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {context.device->ordinal}};
    const CUresult allocated = context.device->memory->allocate(bytes, context.number, &work.parameters.dptr);
    if (allocated != CUDA_SUCCESS) return allocated;
    const CUresult captured = graph::capture_work(stream.capturing, work);
    if (captured != CUDA_SUCCESS) {
        (void)context.device->memory->free(work.parameters.dptr);
        return captured;
    }
    *address = work.parameters.dptr;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream handle) {
    Stream* stream;
    if (const CUresult result = find_target(handle, &stream); result != CUDA_SUCCESS) return result;
    if (is_capturing(*stream)) [[unlikely]]
        return capture_allocation(*stream, bytes, address);
    CUmemoryPool pool = nullptr;
    if (const CUresult result = give_pool(stream->context->device->ordinal, true, &pool); result != CUDA_SUCCESS)
        return result;
    return allocate(address, bytes, pool, *stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, CUstream handle) {
    Stream* stream;
    if (const CUresult result = find_target(handle, &stream); result != CUDA_SUCCESS) return result;
    return allocate(address, bytes, pool, *stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    Stream* stream;
    if (const CUresult result = find_target(handle, &stream); result != CUDA_SUCCESS) return result;
    if (is_capturing(*stream)) [[unlikely]]
        return graph::capture_work(stream->capturing, graph::FreeWork{address});
    Device* device = Runtime::get()->device_of(address);
    if (device == nullptr || Runtime::get()->unified().find(address)) return CUDA_ERROR_INVALID_VALUE;
    return device->memory->free_in_stream(address, stream->number);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) { return give_pool(device, false, pool); }
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) { return give_pool(device, true, pool); }

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
    DevicePools* pools;
    std::unique_lock<std::mutex> lock;
    if (const CUresult result = lock_pools(ordinal, &pools, &lock); result != CUDA_SUCCESS) return result;
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    if (pool == nullptr || pool->device() != ordinal) return CUDA_ERROR_INVALID_VALUE;
    pools->current = reinterpret_cast<std::uint64_t>(handle);
    return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    const CUresult checked = check_location(*location, type);
    return checked == CUDA_SUCCESS ? give_pool(location->id, false, pool) : checked;
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    const CUresult checked = check_location(*location, type);
    return checked == CUDA_SUCCESS ? give_pool(location->id, true, pool) : checked;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
    const CUresult checked = check_location(*location, type);
    return checked == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : checked;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_location(properties->location); result != CUDA_SUCCESS) return result;
    // A handle of the operating system cannot cross the network.
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    std::uint64_t handle = 0;
    const CUresult made = make_pool(properties->location.id, properties->maxSize, &handle);
    *pool = reinterpret_cast<CUmemoryPool>(handle);
    return made;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    DevicePools& pools = Runtime::get()->device(pool->device())->pools;
    std::lock_guard lock(pools.mutex);
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    if (pools.standard == value) return CUDA_ERROR_INVALID_VALUE;
    if (pools.current == value) pools.current = pools.standard;
    (void)Runtime::get()->pools.remove(handle);  // what was allocated from it stays
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    return pool != nullptr ? pool->get(attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    MemoryPool* pool = Runtime::get()->pools.find(handle);
    return pool != nullptr ? pool->set(attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

// Nothing is held back but extents that no allocation uses.
CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t) {
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    (void)Runtime::get()->device(pool->device())->memory->trim();
    return ready();
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_location(*location); result != CUDA_SUCCESS) return result;
    *flags = location->id == pool->device() ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions, std::size_t count) {
    const MemoryPool* pool = Runtime::get()->pools.find(handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        const CUmemAccessDesc& wanted = descriptions[i];
        if (const CUresult result = check_location(wanted.location); result != CUDA_SUCCESS) return result;
        const bool own = wanted.location.id == pool->device();
        if (own && wanted.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
        if (!own && wanted.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_ERROR_INVALID_DEVICE;  // no peer access
    }
    return CUDA_SUCCESS;
}

}  // namespace weft::shim::api
