// Memory with one address for the program and for its kernels: managed memory, and page-locked memory that is mapped
// into the device. The device's bytes lie in the window as any allocation; this process has a shadow at the same
// addresses, whose pages are brought when they are touched and sent, if they were written, before the next work.
// Coherent at launches and synchronisations, not during a kernel. Design note: docs/design/unified-memory.md.
// Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "shim/objects.h"
#include "shim/page_states.h"

namespace weft::shim {

class Runtime;

struct UnifiedRange {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;  // as asked for
    bool is_managed = false;       // else page-locked memory of cuMemHostAlloc
    unsigned flags = 0;            // as given to the call
    std::uint32_t context = 0;
};

class UnifiedMemory {
  public:
    explicit UnifiedMemory(Runtime& runtime) : runtime_(runtime) {}

    // False as long as no program asked for any: then nothing here costs anything.
    bool is_used() const { return is_used_.load(std::memory_order_relaxed); }
    CUresult allocate(Context& context, std::uint64_t size_bytes, bool is_managed, unsigned flags,
                      CUdeviceptr* address);
    // Ends the range that starts there and gives its device memory back; INVALID_VALUE: there is none of this kind. The
    // caller has waited for work that uses it.
    CUresult free(CUdeviceptr address, bool is_managed);
    void free_all_of(std::uint32_t context);
    std::optional<UnifiedRange> find(CUdeviceptr address) const;

    // Before work that may touch unified memory is sent to the stream: pages that were written here leave, and what the
    // work may write is taken out of reach until somebody asks for it.
    CUresult before_work(Stream& stream);
    // Before the program reads the range in another way than by touching it (system calls): brings all of it.
    CUresult bring(CUdeviceptr address, std::uint64_t size_bytes);
    // cuStreamAttachMemAsync. stream: the one that alone may use it (null: none may, or all).
    CUresult attach(CUdeviceptr address, unsigned flags, const Stream* stream);

  private:
    struct Range : UnifiedRange {
        Range(const UnifiedRange& range, std::uint64_t mapped_bytes)
            : UnifiedRange(range), mapped(mapped_bytes), pages(mapped_bytes) {}
        std::uint64_t mapped;         // whole pages
        std::byte* shadow = nullptr;  // the same pages where they can always be read and written
        PageStates pages;
        Device* device = nullptr;
        unsigned attached = CU_MEM_ATTACH_GLOBAL;
        std::uint32_t stream = 0;  // with CU_MEM_ATTACH_SINGLE
    };
    // Per context: the stream that carries pages, and what orders other streams behind it.
    struct Carrier {
        std::shared_ptr<Stream> stream;
        std::uint32_t event = 0;
        std::uint32_t records = 0;
        std::uint64_t epoch = 0;  // counts what was sent
    };
    static bool on_fault(std::uint64_t address, bool is_write);
    bool serve_fault(std::uint64_t address, bool is_write);
    bool map_shadow(Range& range);
    void unmap_shadow(Range& range);
    Range* find_locked(CUdeviceptr address);
    CUresult carrier_of(Context& context, Carrier** carrier);
    CUresult fetch(Range& range, const PageStates::Run& run);
    CUresult send_written(Range& range, bool* sent);
    CUresult release(Range& range, bool* sent);
    CUresult order_behind(Stream& stream, Carrier& carrier, bool sent);
    static bool is_reachable(const Range& range, const Stream& stream);

    Runtime& runtime_;
    std::atomic<bool> is_used_{false};
    mutable std::mutex mutex_;  // may be held while sending and waiting; inbound events never take it
    std::map<CUdeviceptr, std::unique_ptr<Range>> ranges_;
    std::map<std::uint32_t, Carrier> carriers_;  // by context
};

}  // namespace weft::shim
