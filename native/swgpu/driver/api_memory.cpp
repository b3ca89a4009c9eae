// Device memory, page-locked host memory, and what is known about an address.
#include <sys/mman.h>

#include <cstring>

#include "swgpu/driver/api.h"
#include "swgpu/driver/memory.h"
#include "swgpu/driver/memory_pool.h"

using namespace weft::swdriver;

namespace weft::swdriver {

std::optional<std::uint64_t> allocate_device(Device& device, const Context& context, std::uint64_t size,
                                             MemoryKind kind, std::uint64_t pool, bool managed) {
    auto address = device.memory.allocate(size);
    if (!address) return std::nullopt;
    Allocation allocation{.start = *address, .size = size, .kind = kind};
    allocation.device = device.ordinal;
    allocation.context = context.id();
    allocation.backing = pool;
    allocation.managed = managed;
    driver().space.insert(allocation);
    return address;
}

bool free_device(std::uint64_t address, MemoryKind kind) {
    const auto allocation = driver().space.remove(address, kind);
    if (!allocation) return false;
    if (allocation->backing != 0) {
        const Ref<MemoryPool> pool = find<MemoryPool>(reinterpret_cast<void*>(allocation->backing));
        if (pool) pool->give_back(allocation->size);
    }
    driver().devices[static_cast<std::size_t>(allocation->device)]->memory.release(address);
    return true;
}

void free_allocation(const Allocation& allocation) {
    switch (allocation.kind) {
        case MemoryKind::device:
        case MemoryKind::global: free_device(allocation.start, allocation.kind); break;
        case MemoryKind::host:
            if (driver().space.remove(allocation.start, MemoryKind::host))
                munmap(reinterpret_cast<void*>(allocation.start), allocation.size);
            break;
        case MemoryKind::registered: driver().space.remove(allocation.start, MemoryKind::registered); break;
        case MemoryKind::mapping: break;  // belongs to no context
    }
}

}  // namespace weft::swdriver

namespace {

constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

}  // namespace

WEFT_API CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    WEFT_ENTER(entry);
    if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *total_bytes = entry.device().memory.total_bytes();
    *free_bytes = entry.device().memory.free_bytes();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
    WEFT_ENTER(entry);
    if (weft::graph::is_any_capturing()) WEFT_TRY(weft::graph::check_unsafe_call());
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto address = allocate_device(entry.device(), *entry.context, size, MemoryKind::device);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = *address;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                     unsigned int element_bytes) {
    if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
    const size_t padded = (width + kAllocationAlignment - 1) / kAllocationAlignment * kAllocationAlignment;
    if (padded < width || padded > SIZE_MAX / height) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(cuMemAlloc_v2(out, padded * height));
    *pitch = padded;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemFree_v2(CUdeviceptr address) {
    WEFT_ENTER(entry);
    if (weft::graph::is_any_capturing()) WEFT_TRY(weft::graph::check_unsafe_call());
    if (address == 0) return CUDA_SUCCESS;
    const auto allocation = driver().space.find(address);
    if (!allocation || allocation->start != address || allocation->kind != MemoryKind::device)
        return CUDA_ERROR_INVALID_VALUE;
    synchronize(*entry.context);
    return free_device(address, MemoryKind::device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Page-locked host memory.

WEFT_API CUresult cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
    WEFT_ENTER(entry);
    if (out == nullptr || size == 0 || (flags & ~kHostAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation allocation{.start = reinterpret_cast<std::uint64_t>(memory), .size = size, .kind = MemoryKind::host};
    allocation.device = entry->device();
    allocation.flags = flags;
    allocation.context = entry->id();
    driver().space.insert(allocation);
    *out = memory;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemAllocHost_v2(void** out, size_t size) { return cuMemHostAlloc(out, size, 0); }

WEFT_API CUresult cuMemFreeHost(void* pointer) {
    WEFT_ENTER(entry);
    const auto allocation = driver().space.find(reinterpret_cast<std::uint64_t>(pointer));
    if (!allocation || allocation->kind != MemoryKind::host ||
        allocation->start != reinterpret_cast<std::uint64_t>(pointer)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    synchronize(*entry.context);
    free_allocation(*allocation);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
    WEFT_ENTER(entry);
    if (pointer == nullptr || size == 0 || (flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation{
        .start = reinterpret_cast<std::uint64_t>(pointer), .size = size, .kind = MemoryKind::registered};
    allocation.device = entry->device();
    allocation.writable = (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0;
    allocation.flags = flags;
    allocation.context = entry->id();
    return driver().space.insert(allocation) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

WEFT_API CUresult cuMemHostUnregister(void* pointer) {
    WEFT_ENTER(entry);
    const auto allocation = driver().space.find(reinterpret_cast<std::uint64_t>(pointer));
    if (!allocation || allocation->kind != MemoryKind::registered ||
        allocation->start != reinterpret_cast<std::uint64_t>(pointer)) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    synchronize(*entry.context);
    free_allocation(*allocation);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned int flags) {
    WEFT_ENTER(entry);
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = driver().space.find(reinterpret_cast<std::uint64_t>(pointer));
    if (!allocation || !allocation->is_host()) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
    WEFT_ENTER(entry);
    const auto allocation = driver().space.find(reinterpret_cast<std::uint64_t>(pointer));
    if (flags == nullptr || !allocation || allocation->kind != MemoryKind::host) return CUDA_ERROR_INVALID_VALUE;
    *flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;  // with unified addressing all of it is mapped
    return CUDA_SUCCESS;
}

// What is known about an address.

WEFT_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    WEFT_ENTER(entry);
    const auto allocation = driver().space.find(address);
    const auto range = driver().space.extent(address);
    if (!allocation || !range) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = range->begin;
    if (size != nullptr) *size = range->end - range->begin;
    return CUDA_SUCCESS;
}

namespace {

template <typename T>
CUresult put(void* data, T value) {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUcontext context_handle(const Allocation& allocation) {
    const Ref<Context> current = thread_state::current();
    if (current && current->id() == allocation.context) return current->handle_as<CUcontext>();
    auto& device = *driver().devices[static_cast<std::size_t>(allocation.device)];
    std::lock_guard lock(device.primary_mutex);
    if (device.primary && device.primary->id() == allocation.context) return device.primary->handle_as<CUcontext>();
    return nullptr;
}

CUresult pointer_attribute(void* data, CUpointer_attribute attribute, std::uint64_t address,
                           const Allocation& allocation) {
    const weft::engine::MemoryRange range =
        driver().space.extent(address).value_or(weft::engine::MemoryRange{allocation.start, allocation.end(), true});
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, context_handle(allocation));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return put<unsigned>(data, allocation.is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put<CUdeviceptr>(data, address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (!allocation.is_host() && !allocation.managed) return CUDA_ERROR_INVALID_VALUE;
            return put<std::uint64_t>(data, address);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put<unsigned long long>(data, allocation.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put<unsigned>(data, allocation.managed ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put<int>(data, allocation.device);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put<std::uint64_t>(data, range.begin);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<std::size_t>(data, range.end - range.begin);
        case CU_POINTER_ATTRIBUTE_MAPPED: return put<unsigned>(data, allocation.readable ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put<unsigned long long>(data, 0);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return put<unsigned>(data, allocation.writable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return put<std::uint64_t>(data, allocation.kind == MemoryKind::device ? allocation.backing : 0);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return put<std::size_t>(data, allocation.size);
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return put<std::uint64_t>(data, allocation.start);
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put<unsigned long long>(data, allocation.id);
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

std::size_t attribute_bytes(CUpointer_attribute attribute) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
        default: return 8;
    }
}

}  // namespace

WEFT_API CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    WEFT_ENTER(entry);
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = driver().space.find(address);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    return pointer_attribute(data, attribute, address, *allocation);
}

// An unknown address is no error here: its attributes read as zero, which is how programs tell ordinary host memory.
WEFT_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                         CUdeviceptr address) {
    WEFT_ENTER(entry);
    if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto allocation = driver().space.find(address);
    for (unsigned i = 0; i < count; ++i) {
        if (attributes[i] <= 0 || attributes[i] > CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL)
            return CUDA_ERROR_INVALID_VALUE;
        const bool known =
            allocation && pointer_attribute(data[i], attributes[i], address, *allocation) == CUDA_SUCCESS;
        if (known) continue;
        std::memset(data[i], 0, attribute_bytes(attributes[i]));
        if (!allocation && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put<int>(data[i], -2);
    }
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    WEFT_ENTER(entry);
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    return driver().space.find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
