#include "shim/memory_pool.h"

#include <cstring>

namespace weft::shim {
namespace {

void raise(std::atomic<std::uint64_t>& high, std::uint64_t value) {
    std::uint64_t before = high.load();
    while (before < value && !high.compare_exchange_weak(before, value)) {
    }
}

template <typename T>
T read(const void* value) {
    T read_value;
    std::memcpy(&read_value, value, sizeof read_value);
    return read_value;
}

template <typename T>
CUresult put(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
    return CUDA_SUCCESS;
}

}  // namespace

bool MemoryPool::take(std::uint64_t bytes) {
    std::uint64_t used = used_bytes_.load();
    do {
        if (max_bytes_ != 0 && (used > max_bytes_ || bytes > max_bytes_ - used)) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
    raise(used_high_bytes_, used + bytes);
    raise(reserved_high_bytes_, used + bytes);
    return true;
}

CUresult MemoryPool::get(CUmemPool_attribute attribute, void* value) const {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return put<int>(value, reuse_[0].load());
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return put<int>(value, reuse_[1].load());
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return put<int>(value, reuse_[2].load());
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put<cuuint64_t>(value, release_threshold_bytes_.load());
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put<cuuint64_t>(value, used_bytes_.load());
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put<cuuint64_t>(value, reserved_high_bytes_.load());
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put<cuuint64_t>(value, used_high_bytes_.load());
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult MemoryPool::set(CUmemPool_attribute attribute, const void* value) {
    const auto reset = [&](std::atomic<std::uint64_t>& high) {
        if (read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
        high.store(used_bytes_.load());
        return CUDA_SUCCESS;
    };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: reuse_[0] = read<int>(value) != 0; return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: reuse_[1] = read<int>(value) != 0; return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: reuse_[2] = read<int>(value) != 0; return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            release_threshold_bytes_.store(read<cuuint64_t>(value));
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return reset(reserved_high_bytes_);
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return reset(used_high_bytes_);
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace weft::shim
