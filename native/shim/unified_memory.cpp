// The shadow of a range is a memfd with two views: the program's, whose protection says what is current, and our own,
// through which bytes come and go while the program's is closed.
#include "shim/unified_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "shim/copy.h"
#include "shim/log.h"
#include "shim/page_faults.h"
#include "shim/submit.h"

namespace weft::shim {
namespace {

constexpr std::uint64_t kPage = PageStates::kPageBytes;

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t round_up(std::uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace

// ------------------------------------------------------------------------------------------------ beginning and end

CUresult UnifiedMemory::allocate(Context& context, std::uint64_t size_bytes, bool is_managed, unsigned flags,
                                 CUdeviceptr* address) {
    if (size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size_bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const Status taken = take_page_faults(&UnifiedMemory::on_fault); !taken) {
        log_line(taken.text());
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUdeviceptr made = 0;
    const std::uint64_t mapped = round_up(size_bytes);
    const CUresult allocated = context.device->memory->allocate(mapped, context.number, &made, kPage);
    if (allocated != CUDA_SUCCESS) return allocated;
    auto range = std::make_unique<Range>(UnifiedRange{made, size_bytes, is_managed, flags, context.number}, mapped);
    range->device = context.device;
    if (!map_shadow(*range)) {
        (void)context.device->memory->free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    std::lock_guard lock(mutex_);
    ranges_.emplace(made, std::move(range));
    is_used_.store(true);
    *address = made;
    return CUDA_SUCCESS;
}

bool UnifiedMemory::map_shadow(Range& range) {
    const int file = ::memfd_create("weft-unified", MFD_CLOEXEC);
    if (file < 0) return false;
    void* own = MAP_FAILED;
    if (::ftruncate(file, static_cast<off_t>(range.mapped)) == 0)
        own = ::mmap(nullptr, range.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    const bool mapped = own != MAP_FAILED && ::mmap(at(range.address), range.mapped, PROT_READ,
                                                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) != MAP_FAILED;
    ::close(file);
    if (own != MAP_FAILED) range.shadow = static_cast<std::byte*>(own);
    if (mapped) return true;
    unmap_shadow(range);
    return false;
}

// The addresses stay ours: device memory lies there on the other side.
void UnifiedMemory::unmap_shadow(Range& range) {
    ::mmap(at(range.address), range.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (range.shadow != nullptr) ::munmap(range.shadow, range.mapped);
    range.shadow = nullptr;
}

CUresult UnifiedMemory::free(CUdeviceptr address, bool is_managed) {
    std::unique_ptr<Range> range;
    {
        std::lock_guard lock(mutex_);
        const auto found = ranges_.find(address);
        if (found == ranges_.end() || found->second->is_managed != is_managed) return CUDA_ERROR_INVALID_VALUE;
        range = std::move(found->second);
        ranges_.erase(found);
        unmap_shadow(*range);
    }
    return range->device->memory->free(address);
}

void UnifiedMemory::free_all_of(std::uint32_t context) {
    if (!is_used()) return;
    std::lock_guard lock(mutex_);
    carriers_.erase(context);
    for (auto range = ranges_.begin(); range != ranges_.end();) {
        if (range->second->context != context) {
            ++range;
            continue;
        }
        unmap_shadow(*range->second);
        range = ranges_.erase(range);
    }
}

UnifiedMemory::Range* UnifiedMemory::find_locked(CUdeviceptr address) {
    auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return nullptr;
    Range& range = *std::prev(next)->second;
    return address - range.address < range.mapped ? &range : nullptr;
}

std::optional<UnifiedRange> UnifiedMemory::find(CUdeviceptr address) const {
    if (!is_used()) return std::nullopt;
    std::lock_guard lock(mutex_);
    const Range* range = const_cast<UnifiedMemory*>(this)->find_locked(address);
    if (range == nullptr || address - range->address >= range->size_bytes) return std::nullopt;
    return *range;
}

CUresult UnifiedMemory::attach(CUdeviceptr address, unsigned flags, const Stream* stream) {
    std::lock_guard lock(mutex_);
    Range* range = find_locked(address);
    if (range == nullptr || !range->is_managed) return CUDA_ERROR_INVALID_VALUE;
    range->attached = flags;
    range->stream = stream != nullptr ? stream->number : 0;
    return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------------ pages to the device

// Pages travel in a stream of their own, so that neither work of the program holds them up nor they it.
CUresult UnifiedMemory::carrier_of(Context& context, Carrier** carrier) {
    const auto [found, is_new] = carriers_.try_emplace(context.number);
    *carrier = &found->second;
    if (!is_new) return CUDA_SUCCESS;
    const std::uint32_t event = runtime_.next_number();
    found->second.event = event;
    const CUresult opened = runtime_.open_stream(context, CU_STREAM_NON_BLOCKING, 0, &found->second.stream);
    if (opened != CUDA_SUCCESS) {
        carriers_.erase(found);
        return opened;
    }
    return runtime_.session().send<wire::EventCreate>(context.number, 0, [&](auto& frame, std::byte*) {
        frame.event = event;
        frame.flags = CU_EVENT_DISABLE_TIMING;
    });
}

bool UnifiedMemory::is_reachable(const Range& range, const Stream& stream) {
    if (range.device != stream.context->device) return false;
    if (range.attached == CU_MEM_ATTACH_HOST) return false;
    return range.attached != CU_MEM_ATTACH_SINGLE || range.stream == stream.number;
}

CUresult UnifiedMemory::before_work(Stream& stream) {
    std::lock_guard lock(mutex_);
    if (ranges_.empty()) return CUDA_SUCCESS;
    Carrier* carrier;
    if (const CUresult found = carrier_of(*stream.context, &carrier); found != CUDA_SUCCESS) return found;
    bool sent = false;
    for (auto& [address, range] : ranges_) {
        if (!range->pages.has_current() || !is_reachable(*range, stream)) continue;
        if (const CUresult released = release(*range, &sent); released != CUDA_SUCCESS) return released;
    }
    return order_behind(stream, *carrier, sent);
}

// Sends what was written and takes the range out of the program's reach.
CUresult UnifiedMemory::release(Range& range, bool* sent) {
    (void)take_page_faults(&UnifiedMemory::on_fault);
    // Closed first: whoever writes from here on waits for us, and finds a page that is away.
    ::mprotect(at(range.address), range.mapped, PROT_NONE);
    const CUresult result = send_written(range, sent);
    range.pages.all_away();
    return result;
}

CUresult UnifiedMemory::send_written(Range& range, bool* sent) {
    if (!range.pages.has_written()) return CUDA_SUCCESS;
    const auto context = runtime_.context_by_number(range.context);
    if (context == nullptr) return CUDA_SUCCESS;
    Carrier* carrier;
    if (const CUresult found = carrier_of(*context, &carrier); found != CUDA_SUCCESS) return found;
    *sent = true;
    return range.pages.for_each_written([&](const PageStates::Run& run) {
        return copy_to_device(*carrier->stream, range.address + run.offset(), range.shadow + run.offset(),
                              run.size_bytes(), CopyMode::blocking);
    });
}

// The stream's work waits for pages that were sent since it last did.
CUresult UnifiedMemory::order_behind(Stream& stream, Carrier& carrier, bool sent) {
    // Pages of another context's range went by that one's stream.
    if (sent && !runtime_.is_only_context()) return runtime_.wait_for_everything();
    if (sent) {
        ++carrier.epoch;
        const CUresult recorded = submit<wire::EventRecord>(*carrier.stream, 0, [&](auto& frame, std::byte*) {
            frame.event = carrier.event;
            frame.record = ++carrier.records;
        });
        if (recorded != CUDA_SUCCESS) return recorded;
    }
    if (stream.unified_epoch == carrier.epoch) return CUDA_SUCCESS;
    stream.unified_epoch = carrier.epoch;
    return submit<wire::StreamWaitEvent>(stream, 0, [&](auto& frame, std::byte*) { frame.event = carrier.event; });
}

// -------------------------------------------------------------------------------------------------- pages to the host

bool UnifiedMemory::on_fault(std::uint64_t address, bool is_write) {
    Runtime* runtime = Runtime::get();
    return runtime != nullptr && runtime->device_of(address) != nullptr &&
           runtime->unified().serve_fault(address, is_write);
}

bool UnifiedMemory::serve_fault(std::uint64_t address, bool is_write) {
    std::lock_guard lock(mutex_);
    Range* range = find_locked(address);
    if (range == nullptr) return false;
    const std::size_t page = (address - range->address) / kPage;
    // Another thread may have been faster; where the processor does not tell, a readable page was to be written.
    if (range->pages.is_written(page)) return true;
    const bool was_current = range->pages.is_current(page);
    const PageStates::Run run = range->pages.around_fault(page);
    if (!was_current) (void)fetch(*range, run);  // a failure is the context's, and told by its next call
    const bool write = is_write || was_current;
    if (write)
        range->pages.set_written(run);
    else
        range->pages.set_current(run);
    ::mprotect(at(range->address + run.offset()), run.size_bytes(), write ? PROT_READ | PROT_WRITE : PROT_READ);
    return true;
}

CUresult UnifiedMemory::fetch(Range& range, const PageStates::Run& run) {
    const auto context = runtime_.context_by_number(range.context);
    if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    Carrier* carrier;
    if (const CUresult found = carrier_of(*context, &carrier); found != CUDA_SUCCESS) return found;
    return copy_from_device(*carrier->stream, range.shadow + run.offset(), range.address + run.offset(),
                            run.size_bytes(), CopyMode::blocking);
}

CUresult UnifiedMemory::bring(CUdeviceptr address, std::uint64_t size_bytes) {
    std::lock_guard lock(mutex_);
    Range* range = find_locked(address);
    if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t begin = address - range->address, end = std::min(begin + size_bytes, range->mapped);
    const PageStates::Run within{begin / kPage, (end + kPage - 1) / kPage - begin / kPage};
    return range->pages.for_each_away(within, [&](const PageStates::Run& run) {
        if (const CUresult fetched = fetch(*range, run); fetched != CUDA_SUCCESS) return fetched;
        range->pages.set_current(run);
        ::mprotect(at(range->address + run.offset()), run.size_bytes(), PROT_READ);
        return CUDA_SUCCESS;
    });
}

}  // namespace weft::shim
