// See host_memory.h. Blocks end with the process: their contexts may be gone before.
#include "executor/host_memory.h"

#include <cstdint>

namespace weft::executor {

std::shared_ptr<std::byte> HostMemory::acquire(std::size_t size_bytes) {
    std::size_t index = 0;
    while (index < kClasses.size() && kClasses[index] < size_bytes) ++index;
    if (index == kClasses.size()) return nullptr;
    std::byte* block = nullptr;
    if (!free_[index].empty()) {
        block = free_[index].back();
        free_[index].pop_back();
    } else {
        block = allocate(kClasses[index]);
    }
    if (block == nullptr) return nullptr;
    used_bytes_ += kClasses[index];
    return {block, [this, index](std::byte* owned) { release(owned, index); }};
}

std::byte* HostMemory::allocate(std::size_t size_bytes) {
    void* block = nullptr;
    return driver_.cuMemHostAlloc(&block, size_bytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS ? static_cast<std::byte*>(block) : nullptr;
}

void HostMemory::release(std::byte* block, std::size_t index) {
    used_bytes_ -= kClasses[index];
    if (free_[index].size() < kKeptPerClass) {
        free_[index].push_back(block);
    } else {
        driver_.cuMemFreeHost(block);
    }
}

void HostMemory::pin(void* address, std::size_t size_bytes) {
    if (reinterpret_cast<std::uintptr_t>(address) % 4096 != 0 || !pinned_.insert(address).second) return;
    (void)driver_.cuMemHostRegister_v2(address, size_bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

void HostMemory::unpin(void* address) {
    if (pinned_.erase(address) != 0) (void)driver_.cuMemHostUnregister(address);
}

}  // namespace weft::executor
