// Virtual memory management. Addresses are the same on both sides, so a reservation is made here first and then there.
#include <sys/mman.h>

#include "gen/shim_api.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

constexpr int kReserveTries = 16;

Runtime& runtime() { return *Runtime::get(); }

// The device that a property or a description means.
CUresult find_device(const CUmemLocation& location, Device** device) {
    if (runtime().session().is_lost()) return Session::kLost;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    *device = runtime().device(location.id);
    return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult check_properties(const CUmemAllocationProp& properties, Device** device) {
    if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    // A handle of the operating system means nothing on another machine.
    if (properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    return find_device(properties.location, device);
}

std::uint64_t granularity() {
    std::uint64_t largest = 0;
    for (const auto& device : runtime().devices())
        largest = std::max<std::uint64_t>(largest, device->info.granularity_bytes);
    return largest;
}

// Takes the addresses out of this process's. 0: they are in use, or there are none.
std::uint64_t reserve_here(std::uint64_t wanted, std::uint64_t size, std::uint64_t alignment) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (wanted != 0) {
        void* got = ::mmap(reinterpret_cast<void*>(wanted), size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED) return 0;
        if (got == reinterpret_cast<void*>(wanted)) return wanted;
        ::munmap(got, size);
        return 0;
    }
    if (size + alignment < size) return 0;
    void* got = ::mmap(nullptr, size + alignment, PROT_NONE, kFlags, -1, 0);
    if (got == MAP_FAILED) return 0;
    const auto base = reinterpret_cast<std::uint64_t>(got);
    const std::uint64_t start = (base + alignment - 1) / alignment * alignment;
    if (start > base) ::munmap(got, start - base);
    if (base + alignment > start) ::munmap(reinterpret_cast<void*>(start + size), base + alignment - start);
    return start;
}

// Both sides or none. INVALID_ADDRESS_SPACE: taken on one of them.
CUresult reserve_both(std::uint64_t wanted, std::uint64_t size, std::uint64_t alignment, std::uint64_t* address) {
    *address = reserve_here(wanted, size, alignment);
    if (*address == 0) return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    const CUresult result = runtime()
                                .session()
                                .call<wire::AddressReserve>(0, 0,
                                                            [&](auto& frame, std::byte*) {
                                                                frame.address = *address;
                                                                frame.size_bytes = size;
                                                            })
                                .status;
    if (result != CUDA_SUCCESS) ::munmap(reinterpret_cast<void*>(*address), size);
    return result;
}

// action(mapping) for mappings that fill [address, address + size) exactly; INVALID_VALUE, and nothing done, if they do
// not.
template <typename Action>
CUresult for_each_mapping(CUdeviceptr address, std::size_t size, Action&& action) {
    std::vector<VirtualMapping> mappings;
    std::uint64_t position = address;
    while (position - address < size) {
        const auto mapping = runtime().virtual_memory.mapping_at(position);
        if (!mapping) return CUDA_ERROR_INVALID_VALUE;
        position += mapping->memory->size_bytes;
        mappings.push_back(*mapping);
    }
    if (size == 0 || position - address != size) return CUDA_ERROR_INVALID_VALUE;
    for (const VirtualMapping& mapping : mappings) {
        if (const CUresult result = action(mapping); result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

// Neither handle nor mapping is left.
CUresult let_go(const PhysicalMemory& memory) {
    return runtime().session().send<wire::PhysicalRelease>(
        0, 0, [&](auto& frame, std::byte*) { frame.physical = memory.number; });
}

}  // namespace

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
    Device* device;
    if (const CUresult result = check_properties(*properties, &device); result != CUDA_SUCCESS) return result;
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->info.granularity_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t size, std::size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
    const std::uint64_t unit = granularity();
    if (size == 0 || size % unit != 0 || flags != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t wide = std::max<std::uint64_t>(alignment, unit);
    std::uint64_t address = 0;
    CUresult result = CUDA_ERROR_INVALID_ADDRESS_SPACE;
    if (wanted != 0 && wanted % wide == 0) result = reserve_both(wanted, size, wide, &address);
    // The wanted address is a wish. What is free here is mostly free there.
    for (int i = 0; i < kReserveTries && result == CUDA_ERROR_INVALID_ADDRESS_SPACE; ++i)
        result = reserve_both(0, size, wide, &address);
    if (result != CUDA_SUCCESS) return result == CUDA_ERROR_INVALID_ADDRESS_SPACE ? CUDA_ERROR_OUT_OF_MEMORY : result;
    runtime().virtual_memory.add_reservation(address, size);
    *out = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
    if (!runtime().virtual_memory.remove_reservation(address, size)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult sent = runtime().session().send<wire::AddressFree>(0, 0, [&](auto& frame, std::byte*) {
        frame.address = address;
        frame.size_bytes = size;
    });
    ::munmap(reinterpret_cast<void*>(address), size);
    return sent;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
    Device* device;
    if (const CUresult result = check_properties(*properties, &device); result != CUDA_SUCCESS) return result;
    if (size == 0 || size % device->info.granularity_bytes != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    auto memory = std::make_shared<PhysicalMemory>();
    memory->number = runtime().next_number();
    memory->device = device;
    memory->size_bytes = size;
    const auto create = [&] {
        return runtime()
            .session()
            .call<wire::PhysicalCreate>(0, 0,
                                        [&](auto& frame, std::byte*) {
                                            frame.physical = memory->number;
                                            frame.device = static_cast<std::uint32_t>(device->ordinal);
                                            frame.size_bytes = size;
                                        })
            .status;
    };
    CUresult result = create();
    // Extents that no allocation uses may hold what is missing.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && device->memory->trim()) result = create();
    if (result != CUDA_SUCCESS) return result;
    device->memory->add_module_bytes(static_cast<std::int64_t>(size));
    memory->handle = runtime().physical_memory.insert(memory);
    *handle = memory->handle;
    return memory->handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    const std::shared_ptr<PhysicalMemory> memory = runtime().physical_memory.share(reinterpret_cast<void*>(handle));
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    bool is_last = false, is_gone = false;
    runtime().virtual_memory.release(*memory, &is_last, &is_gone);
    if (is_last) (void)runtime().physical_memory.remove(handle);
    return is_gone ? let_go(*memory) : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    const std::shared_ptr<PhysicalMemory> memory = runtime().physical_memory.share(reinterpret_cast<void*>(handle));
    if (memory == nullptr || offset != 0 || flags != 0 || size != memory->size_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (address % memory->device->info.granularity_bytes != 0 || !runtime().virtual_memory.is_free(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    const Reply reply = runtime().session().call<wire::PhysicalMap>(0, 0, [&](auto& frame, std::byte*) {
        frame.address = address;
        frame.physical = memory->number;
    });
    if (reply.status == CUDA_SUCCESS) runtime().virtual_memory.add_mapping(address, memory);
    return reply.status;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
    return for_each_mapping(address, size, [&](const VirtualMapping& mapping) {
        const Reply reply = runtime().session().call<wire::PhysicalUnmap>(
            0, 0, [&](auto& frame, std::byte*) { frame.address = mapping.address; });
        if (reply.status != CUDA_SUCCESS) return reply.status;
        return runtime().virtual_memory.remove_mapping(mapping.address) ? let_go(*mapping.memory) : CUDA_SUCCESS;
    });
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* descriptions, std::size_t count) {
    if (count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        Device* device;
        if (const CUresult result = find_device(descriptions[i].location, &device); result != CUDA_SUCCESS)
            return result;
        const unsigned flags = descriptions[i].flags;
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        const CUresult set = for_each_mapping(address, size, [&](const VirtualMapping& mapping) {
            const Reply reply = runtime().session().call<wire::PhysicalAccess>(0, 0, [&](auto& frame, std::byte*) {
                frame.address = mapping.address;
                frame.device = static_cast<std::uint32_t>(device->ordinal);
                frame.flags = flags;
            });
            if (reply.status == CUDA_SUCCESS)
                runtime().virtual_memory.set_access(mapping.address, device->ordinal, flags);
            return reply.status;
        });
        if (set != CUDA_SUCCESS) return set;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    Device* device;
    if (const CUresult result = find_device(*location, &device); result != CUDA_SUCCESS) return result;
    const auto mapping = runtime().virtual_memory.find(address);
    if (!mapping) return CUDA_ERROR_INVALID_VALUE;
    const auto found = mapping->access.find(device->ordinal);
    *flags = found != mapping->access.end() ? found->second : 0;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    const auto mapping = runtime().virtual_memory.find(reinterpret_cast<CUdeviceptr>(address));
    if (!mapping) return CUDA_ERROR_INVALID_VALUE;
    if (runtime().virtual_memory.retain(*mapping->memory))
        mapping->memory->handle = runtime().physical_memory.insert(mapping->memory);
    *handle = mapping->memory->handle;
    return *handle != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
    const PhysicalMemory* memory = runtime().physical_memory.find(handle);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = memory->device->ordinal;
    return CUDA_SUCCESS;
}

}  // namespace weft::shim::api
