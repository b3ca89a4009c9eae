// See host_memory.h.
#include "executor/host_memory.h"

#include <cstdint>
#include <cstdlib>

namespace weft::executor {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

HostMemory::~HostMemory() {
    for (auto& blocks : free_)
        for (std::byte* block : blocks) std::free(block);
}

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
    pin(block, kClasses[index]);
    used_bytes_ += kClasses[index];
    return {block, [this, index](std::byte* owned) { release(owned, index); }};
}

// Not the driver's memory: that would end with the context that happens to be current.
std::byte* HostMemory::allocate(std::size_t size_bytes) {
    return static_cast<std::byte*>(std::aligned_alloc(kPage, size_bytes));
}

void HostMemory::release(std::byte* block, std::size_t index) {
    used_bytes_ -= kClasses[index];
    if (free_[index].size() < kKeptPerClass) {
        free_[index].push_back(block);
    } else {
        unpin(block);
        std::free(block);
    }
}

void HostMemory::pin(void* address, std::size_t size_bytes) {
    if (reinterpret_cast<std::uintptr_t>(address) % kPage != 0 || pinned_.contains(address)) return;
    CUcontext context = nullptr;
    if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return;
    if (driver_.cuMemHostRegister_v2(address, size_bytes, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS)
        pinned_.emplace(address, context);
}

void HostMemory::unpin(void* address) {
    if (pinned_.erase(address) != 0) (void)driver_.cuMemHostUnregister(address);
}

void HostMemory::context_ends(CUcontext context) {
    std::erase_if(pinned_, [&](const auto& pinned) {
        if (pinned.second != context) return false;
        (void)driver_.cuMemHostUnregister(pinned.first);
        return true;
    });
}

}  // namespace weft::executor
