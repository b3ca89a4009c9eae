// The parts of memory accesses that run rarely: range lookups, faults, single generic pointers.
#include "swgpu/engine/warp.h"

namespace weft::engine {

bool find_range(Context& context, uint64_t address, uint64_t size_bytes, bool is_write) {
    for (const CachedRange& range : context.ranges) {
        if (range.begin <= address && address < range.end && range.end - address >= size_bytes &&
            (!is_write || range.writable))
            return true;
    }
    if (context.memory == nullptr || address >= kFirstWindow) return false;
    MemoryRange found = context.memory->lookup(address);
    if (found.begin > address || address >= found.end) return false;
    context.ranges[context.next_range++ % kCachedRanges] = {found.begin, found.end, found.writable};
    return found.end - address >= size_bytes && (!is_write || found.writable);
}

const Op* raise_fault(Context& context, const Op* op, FaultKind kind, AddressSpace space, uint32_t lane,
                      uint64_t address, uint32_t size_bytes, bool is_write) {
    context.fault = {kind, space, is_write, lane, size_bytes, address, op};
    return nullptr;
}

uint8_t* host_pointer(Context& context, uint32_t lane, uint64_t address, uint64_t bytes, bool is_write) {
    uint64_t window = address & ~(kWindowBytes - 1), offset = address & (kWindowBytes - 1);
    if (address < kFirstWindow)
        return find_range(context, address, bytes, is_write) ? reinterpret_cast<uint8_t*>(address) : nullptr;
    if (window == kSharedWindow) return offset + bytes <= context.shared_bytes ? context.shared + offset : nullptr;
    if (window == kLocalWindow) {
        return offset + bytes <= context.local_stride ? context.local + lane * context.local_stride + offset : nullptr;
    }
    if (window == kParamWindow && !is_write && offset + bytes <= context.param_bytes)
        return const_cast<uint8_t*>(context.params) + offset;
    return nullptr;
}

}  // namespace weft::engine
