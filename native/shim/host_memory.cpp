// shm: small allocations share segments of 16 MiB, which stay; larger ones have a segment of their own, which goes with
// them.
#include "shim/host_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "shim/session.h"

namespace weft::shim {
namespace {

constexpr std::uint64_t kSharedSegmentBytes = 16u << 20;
constexpr std::uint64_t kOwnSegmentBytes = 4u << 20;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2u << 20;

std::uint64_t round_up(std::uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

// Page-locked memory is there for fast copies: large blocks lie on huge pages where the system gives some.
void* map_pages(std::uint64_t size_bytes) {
    const std::uint64_t spare = size_bytes >= kOwnSegmentBytes ? kHugePage : 0;
    void* memory = ::mmap(nullptr, size_bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || spare == 0) return memory;
    auto* start = static_cast<char*>(memory);
    const std::uint64_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
    if (head != 0) ::munmap(start, head);
    if (head != spare) ::munmap(start + head + size_bytes, spare - head);
    ::madvise(start + head, size_bytes, MADV_HUGEPAGE);
    return start + head;
}

}  // namespace

CUresult HostMemory::allocate(std::uint64_t size_bytes, unsigned flags, std::uint32_t context, void** address) {
    if (size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    HostRange range;
    range.size_bytes = size_bytes;
    range.flags = flags;
    range.context = context;
    const bool shared = session_.channel().kind() == transport::PathKind::shm && !session_.is_recorded();
    std::lock_guard lock(mutex_);
    const CUresult made = shared ? allocate_shared(size_bytes, &range) : allocate_private(size_bytes, &range);
    if (made != CUDA_SUCCESS) return made;
    ranges_.emplace(range.address, range);
    *address = reinterpret_cast<void*>(range.address);
    return CUDA_SUCCESS;
}

CUresult HostMemory::allocate_private(std::uint64_t size_bytes, HostRange* range) {
    if (size_bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    void* memory = map_pages(round_up(size_bytes));
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    range->address = reinterpret_cast<std::uint64_t>(memory);
    return CUDA_SUCCESS;
}

CUresult HostMemory::allocate_shared(std::uint64_t size_bytes, HostRange* range) {
    if (size_bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto use = [&](Segment& segment, std::uint64_t address) {
        range->address = address;
        range->segment = segment.number;
        range->offset = address - segment.address;
        return CUDA_SUCCESS;
    };
    if (size_bytes >= kOwnSegmentBytes) {
        Segment* segment = open_segment(round_up(size_bytes));
        return segment != nullptr ? use(*segment, segment->address) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (Segment& segment : segments_) {
        if (!segment.heap) continue;
        if (const auto address = segment.heap->allocate(size_bytes)) return use(segment, *address);
    }
    Segment* segment = open_segment(kSharedSegmentBytes);
    if (segment == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    segment->heap = std::make_unique<RangeHeap>(kPage);
    segment->heap->add(segment->address, segment->size_bytes);
    return use(*segment, *segment->heap->allocate(size_bytes));
}

HostMemory::Segment* HostMemory::open_segment(std::uint64_t size_bytes) {
    const std::uint32_t number = ++next_segment_;
    auto memory = session_.channel().create_segment(number, size_bytes);
    if (!memory) return nullptr;
    const CUresult sent = session_.send<wire::SegmentOpen>(0, 0, [&](auto& frame, std::byte*) {
        frame.segment = number;
        frame.size_bytes = size_bytes;
    });
    if (sent != CUDA_SUCCESS) {
        ::munmap(memory->data(), memory->size());
        return nullptr;
    }
    segments_.push_back({number, reinterpret_cast<std::uint64_t>(memory->data()), size_bytes, nullptr});
    return &segments_.back();
}

CUresult HostMemory::free(void* address) {
    std::lock_guard lock(mutex_);
    const auto found = ranges_.find(reinterpret_cast<std::uint64_t>(address));
    if (found == ranges_.end() || found->second.registered) return CUDA_ERROR_INVALID_VALUE;
    const HostRange range = found->second;
    ranges_.erase(found);
    if (range.segment != 0)
        free_shared(range);
    else
        ::munmap(address, round_up(range.size_bytes));
    return CUDA_SUCCESS;
}

void HostMemory::free_shared(const HostRange& range) {
    const auto segment =
        std::find_if(segments_.begin(), segments_.end(), [&](const Segment& s) { return s.number == range.segment; });
    if (segment->heap) {
        const auto size = segment->heap->detach(range.address);
        segment->heap->release(range.address, *size);
        return;
    }
    (void)session_.send<wire::SegmentClose>(0, 0, [&](auto& frame, std::byte*) { frame.segment = segment->number; });
    ::munmap(reinterpret_cast<void*>(segment->address), segment->size_bytes);
    segments_.erase(segment);
}

CUresult HostMemory::add(void* address, std::uint64_t size_bytes, unsigned flags, std::uint32_t context) {
    if (address == nullptr || size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    HostRange range{reinterpret_cast<std::uint64_t>(address), size_bytes, flags, true, 0, 0, context};
    std::lock_guard lock(mutex_);
    auto next = ranges_.lower_bound(range.address);
    if (next != ranges_.end() && next->first < range.address + size_bytes)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (next != ranges_.begin()) {
        const HostRange& previous = std::prev(next)->second;
        if (previous.address + previous.size_bytes > range.address) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    ranges_.emplace(range.address, range);
    return CUDA_SUCCESS;
}

CUresult HostMemory::remove(void* address) {
    std::lock_guard lock(mutex_);
    const auto found = ranges_.find(reinterpret_cast<std::uint64_t>(address));
    if (found == ranges_.end() || !found->second.registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    ranges_.erase(found);
    return CUDA_SUCCESS;
}

std::optional<HostRange> HostMemory::find(const void* address, std::uint64_t size_bytes) const {
    const auto wanted = reinterpret_cast<std::uint64_t>(address);
    std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(wanted);
    if (range == ranges_.begin()) return std::nullopt;
    const HostRange& found = std::prev(range)->second;
    const std::uint64_t offset = wanted - found.address;
    if (offset >= found.size_bytes || size_bytes > found.size_bytes - offset) return std::nullopt;
    return found;
}

void HostMemory::free_all_of(std::uint32_t context) {
    std::vector<HostRange> gone;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [address, range] : ranges_)
            if (range.context == context) gone.push_back(range);
    }
    for (const HostRange& range : gone) {
        void* address = reinterpret_cast<void*>(range.address);
        (void)(range.registered ? remove(address) : free(address));
    }
}

}  // namespace weft::shim
