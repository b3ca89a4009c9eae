// The only file that maps and unmaps device addresses outside the arenas.
#include "swgpu/driver/virtual_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace weft::swdriver {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
bool aligned(std::uint64_t value) { return value % kMappingGranularity == 0; }

bool map_private(std::uint64_t address, std::uint64_t size) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(pointer(address), size, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return false;
    madvise(pointer(address), size, MADV_DONTFORK);
    madvise(pointer(address), size, MADV_DONTDUMP);
    return true;
}

bool map_shared(std::uint64_t address, std::uint64_t size, int fd) {
    return mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) !=
           MAP_FAILED;
}

bool write_all(int fd, const void* data, std::uint64_t size) {
    for (std::uint64_t done = 0; done < size;) {
        const ssize_t wrote = pwrite(fd, static_cast<const char*>(data) + done, size - done, static_cast<off_t>(done));
        if (wrote <= 0) return false;
        done += static_cast<std::uint64_t>(wrote);
    }
    return true;
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
    if (parked_ != 0) munmap(pointer(parked_), size_);
    if (fd_ >= 0) close(fd_);
    memory_.refund(size_);
}

CUresult VirtualMemory::reserve(std::uint64_t wanted, std::uint64_t size, std::uint64_t alignment,
                                std::uint64_t* address) {
    if (size == 0 || !aligned(size) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (alignment < kMappingGranularity) alignment = kMappingGranularity;
    if (wanted % alignment != 0) return CUDA_ERROR_INVALID_VALUE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    std::uint64_t start = wanted;
    if (wanted != 0) {
        void* got = mmap(pointer(wanted), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        if (got != pointer(wanted)) {
            munmap(got, size);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    } else {
        if (size + alignment < size) return CUDA_ERROR_OUT_OF_MEMORY;
        void* got = mmap(nullptr, size + alignment, PROT_NONE, flags, -1, 0);
        if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        const std::uint64_t base = reinterpret_cast<std::uint64_t>(got);
        start = (base + alignment - 1) & ~(alignment - 1);
        if (start > base) munmap(got, start - base);
        if (base + alignment > start) munmap(pointer(start + size), base + alignment - start);
    }
    std::lock_guard lock(mutex_);
    reservations_.emplace(start, size);
    *address = start;
    return CUDA_SUCCESS;
}

CUresult VirtualMemory::unreserve(std::uint64_t address, std::uint64_t size) {
    std::lock_guard lock(mutex_);
    auto reservation = reservations_.find(address);
    if (reservation == reservations_.end() || reservation->second != size) return CUDA_ERROR_INVALID_VALUE;
    auto mapping = mappings_.lower_bound(address);
    if (mapping != mappings_.end() && mapping->first < address + size) return CUDA_ERROR_INVALID_VALUE;
    reservations_.erase(reservation);
    munmap(pointer(address), size);
    return CUDA_SUCCESS;
}

CUresult VirtualMemory::create(DeviceMemory& memory, int device, std::uint64_t size,
                               CUmemGenericAllocationHandle* handle) {
    if (size == 0 || !aligned(size)) return CUDA_ERROR_INVALID_VALUE;
    if (!memory.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    Ref<PhysicalMemory> object(new PhysicalMemory(memory, device, size));
    *handle = HandleTable::instance().insert(object.get());
    return CUDA_SUCCESS;
}

CUresult VirtualMemory::release(CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(mutex_);
    auto memory = HandleTable::instance().find<PhysicalMemory>(reinterpret_cast<void*>(handle));
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    if (--memory->handles_ == 0) HandleTable::instance().remove<PhysicalMemory>(reinterpret_cast<void*>(handle));
    return CUDA_SUCCESS;
}

CUresult VirtualMemory::retain(std::uint64_t address, CUmemGenericAllocationHandle* handle) {
    std::lock_guard lock(mutex_);
    auto mapping = mappings_.upper_bound(address);
    if (mapping == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
    --mapping;
    PhysicalMemory& memory = *mapping->second;
    if (address >= mapping->first + memory.size()) return CUDA_ERROR_INVALID_VALUE;
    if (memory.handles_++ == 0) HandleTable::instance().insert(&memory);
    *handle = memory.handle();
    return CUDA_SUCCESS;
}

bool VirtualMemory::is_reserved(std::uint64_t address, std::uint64_t size) const {
    auto reservation = reservations_.upper_bound(address);
    if (reservation == reservations_.begin()) return false;
    --reservation;
    return address + size <= reservation->first + reservation->second;
}

CUresult VirtualMemory::map(std::uint64_t address, std::uint64_t size, PhysicalMemory& memory) {
    if (!aligned(address) || size != memory.size()) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(mutex_);
    if (!is_reserved(address, size)) return CUDA_ERROR_INVALID_VALUE;
    Allocation mapping{
        .start = address, .size = size, .kind = MemoryKind::mapping, .readable = false, .writable = false};
    mapping.device = memory.device();
    mapping.backing = memory.handle();
    if (!space_.insert(mapping)) return CUDA_ERROR_INVALID_VALUE;
    if (!place(address, memory)) {
        space_.remove(address);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ++memory.mappings_;
    mappings_.emplace(address, Ref<PhysicalMemory>(&memory));
    return CUDA_SUCCESS;
}

bool VirtualMemory::place(std::uint64_t address, PhysicalMemory& memory) {
    const std::uint64_t size = memory.size();
    if (memory.fd_ < 0 && memory.mappings_ > 0 && !share(memory)) return false;
    if (memory.fd_ >= 0) return map_shared(address, size, memory.fd_);
    if (memory.parked_ != 0) {
        if (mremap(pointer(memory.parked_), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) == MAP_FAILED)
            return false;
        memory.parked_ = 0;
    } else {
        if (!map_private(address, size)) return false;
        madvise(pointer(address), size, MADV_HUGEPAGE);
    }
    memory.sole_ = address;
    return true;
}

// Moves private pages into a memfd so that a second address can show them. Work in flight must not write them
// meanwhile.
bool VirtualMemory::share(PhysicalMemory& memory) {
    const int fd = memfd_create("weft-swgpu", MFD_CLOEXEC);
    if (fd < 0) return false;
    const bool moved = ftruncate(fd, static_cast<off_t>(memory.size())) == 0 &&
                       write_all(fd, pointer(memory.sole_), memory.size()) &&
                       map_shared(memory.sole_, memory.size(), fd);
    if (!moved) {
        close(fd);
        return false;
    }
    memory.fd_ = fd;
    memory.sole_ = 0;
    return true;
}

CUresult VirtualMemory::unmap(std::uint64_t address, std::uint64_t size) {
    std::lock_guard lock(mutex_);
    std::uint64_t position = address;
    while (position < address + size) {
        auto mapping = mappings_.find(position);
        if (mapping == mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
        position += mapping->second->size();
    }
    if (size == 0 || position != address + size) return CUDA_ERROR_INVALID_VALUE;
    for (position = address; position < address + size;) {
        auto mapping = mappings_.find(position);
        space_.remove(position);
        displace(position, *mapping->second);
        position += mapping->second->size();
        mappings_.erase(mapping);
    }
    return CUDA_SUCCESS;
}

void VirtualMemory::displace(std::uint64_t address, PhysicalMemory& memory) {
    --memory.mappings_;
    if (memory.sole_ == address) {
        memory.sole_ = 0;
        if (memory.handles_ > 0) {  // it may be mapped again, with its contents
            void* parked =
                mremap(pointer(address), memory.size(), memory.size(), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
            if (parked != MAP_FAILED) {
                memory.parked_ = reinterpret_cast<std::uint64_t>(parked);
                return;
            }
        }
    }
    map_private(address, memory.size());
}

}  // namespace weft::swdriver
