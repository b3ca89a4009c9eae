// From the address operand of an access to 32 host addresses, with all checks: alignment, bounds, windows. For handler
// files; see lanes.h. A lane that does not execute gets the address of the first that does, so that whole rows can be
// handled.
#pragma once

#include "swgpu/engine/lanes.h"

namespace weft::engine::WEFT_ISA {
namespace {

struct Span {
    uint64_t low;
    uint64_t high;
    uint64_t bits;  // OR of all
};

WEFT_INLINE Span span_of(const uint64_t* address) {
    uint64_t low = address[0], high = address[0], bits = 0;
    for (int i = 0; i < 32; ++i) {
        low = address[i] < low ? address[i] : low;
        high = address[i] > high ? address[i] : high;
        bits |= address[i];
    }
    return {low, high, bits};
}

WEFT_INLINE void fill_inactive(uint64_t* address, uint32_t mask) {
    uint64_t first = address[__builtin_ctz(mask)];
    for (int i = 0; i < 32; ++i) address[i] = ((mask >> i) & 1) ? address[i] : first;
}

WEFT_INLINE void compute_addresses(Context& context, const Op* op, uint32_t mask, uint64_t* address) {
    uint64_t offset = op->imm;
    if (op->aux & memory_flags::kNoBase) {
        for (int i = 0; i < 32; ++i) address[i] = offset;
        return;
    }
    if (op->aux & memory_flags::kNarrowAddress) {
        const uint32_t* base = row<const uint32_t>(context, op->a);
        uint32_t narrow = static_cast<uint32_t>(offset);
        for (int i = 0; i < 32; ++i) address[i] = static_cast<uint32_t>(base[i] + narrow);
    } else {
        const uint64_t* base = row<const uint64_t>(context, op->a);
        for (int i = 0; i < 32; ++i) address[i] = base[i] + offset;
    }
    if (mask != kFullMask) fill_inactive(address, mask);
}

// The first lane of `mask` whose [address, address+bytes) is outside [low, end).
WEFT_INLINE uint32_t lane_outside(const uint64_t* address, uint32_t mask, uint64_t low, uint64_t end, uint64_t bytes) {
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        if (address[lane] < low || address[lane] > end || end - address[lane] < bytes) return lane;
    }
    return 0;
}

inline bool misaligned(Context& context, const Op* op, uint32_t mask, AddressSpace space, uint32_t bytes,
                       bool is_write) {
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        if ((context.address[lane] & (bytes - 1)) != 0) {
            raise_fault(context, op, FaultKind::misaligned_address, space, lane, context.address[lane], bytes,
                        is_write);
            break;
        }
    }
    return false;
}

inline bool resolve_global(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write, Span span) {
    uint32_t hint = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(op) / sizeof(Op));
    for (uint32_t k = 0; k < kCachedRanges; ++k) {
        const CachedRange& range = context.ranges[(hint + k) % kCachedRanges];
        if (range.begin <= span.low && span.high < range.end && range.end - span.high >= bytes &&
            (!is_write || range.writable))
            return true;
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        if (!find_range(context, context.address[lane], bytes, is_write)) {
            raise_fault(context, op, FaultKind::illegal_address, AddressSpace::global, lane, context.address[lane],
                        bytes, is_write);
            return false;
        }
    }
    return true;
}

// Offsets in a flat piece of memory, such as shared memory.
inline bool resolve_flat(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write, Span span,
                         AddressSpace space, uint8_t* base, uint64_t size) {
    if (span.high > size || size - span.high < bytes) {
        uint32_t lane = lane_outside(context.address, mask, 0, size, bytes);
        raise_fault(context, op, FaultKind::illegal_address, space, lane, context.address[lane], bytes, is_write);
        return false;
    }
    for (int i = 0; i < 32; ++i) context.address[i] += reinterpret_cast<uintptr_t>(base);
    return true;
}

inline bool resolve_local(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write, Span span) {
    if (span.high > context.local_stride || context.local_stride - span.high < bytes) {
        uint32_t lane = lane_outside(context.address, mask, 0, context.local_stride, bytes);
        raise_fault(context, op, FaultKind::illegal_address, AddressSpace::local, lane, context.address[lane], bytes,
                    is_write);
        return false;
    }
    uint64_t base = reinterpret_cast<uintptr_t>(context.local), stride = context.local_stride;
    if (mask == kFullMask) {
        for (uint64_t i = 0; i < 32; ++i) context.address[i] += base + i * stride;
        return true;
    }
    // A lane that does not execute keeps to the memory of the first that does.
    uint64_t first = static_cast<uint64_t>(__builtin_ctz(mask));
    for (uint64_t i = 0; i < 32; ++i) context.address[i] += base + (((mask >> i) & 1) ? i : first) * stride;
    return true;
}

// Lanes may point to different windows: each is resolved by itself.
inline bool resolve_mixed(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write) {
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        uint64_t address = context.address[lane], offset = address & (kWindowBytes - 1),
                 window = address & ~(kWindowBytes - 1);
        bool fits = false;
        AddressSpace space = AddressSpace::global;
        if (window == kSharedWindow) {
            space = AddressSpace::shared;
            fits = offset + bytes <= context.shared_bytes;
            context.address[lane] = reinterpret_cast<uintptr_t>(context.shared) + offset;
        } else if (window == kLocalWindow) {
            space = AddressSpace::local;
            fits = offset + bytes <= context.local_stride;
            context.address[lane] = reinterpret_cast<uintptr_t>(context.local) + lane * context.local_stride + offset;
        } else if (window == kParamWindow) {
            space = AddressSpace::kernel_param;
            fits = offset + bytes <= context.param_bytes && !is_write;
            context.address[lane] = reinterpret_cast<uintptr_t>(context.params) + offset;
        } else {
            fits = find_range(context, address, bytes, is_write);
        }
        if (!fits) {
            raise_fault(context, op, FaultKind::illegal_address, space, lane, address, bytes, is_write);
            return false;
        }
    }
    if (mask != kFullMask) fill_inactive(context.address, mask);
    return true;
}

inline bool resolve_generic(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write, Span span) {
    if (span.high < kFirstWindow) return resolve_global(context, op, mask, bytes, is_write, span);
    if (span.low >= kSharedWindow && span.high < kSharedWindow + kWindowBytes) {
        for (int i = 0; i < 32; ++i) context.address[i] -= kSharedWindow;
        return resolve_flat(context, op, mask, bytes, is_write, {0, span.high - kSharedWindow, 0}, AddressSpace::shared,
                            context.shared, context.shared_bytes);
    }
    if (span.low >= kLocalWindow && span.high < kLocalWindow + kWindowBytes) {
        for (int i = 0; i < 32; ++i) context.address[i] -= kLocalWindow;
        return resolve_local(context, op, mask, bytes, is_write, {0, span.high - kLocalWindow, 0});
    }
    return resolve_mixed(context, op, mask, bytes, is_write);
}

inline bool resolve_param(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write, Span span) {
    if (span.low >= kParamWindow && !is_write) {
        for (int i = 0; i < 32; ++i) context.address[i] -= kParamWindow;
        return resolve_flat(context, op, mask, bytes, is_write, {0, span.high - kParamWindow, 0},
                            AddressSpace::kernel_param, const_cast<uint8_t*>(context.params), context.param_bytes);
    }
    return resolve_local(context, op, mask, bytes, is_write, span);
}

// False after a fault. `bytes` is a power of two.
WEFT_INLINE bool resolve(Context& context, const Op* op, uint32_t mask, uint32_t bytes, bool is_write) {
    compute_addresses(context, op, mask, context.address);
    Span span = span_of(context.address);
    auto space = static_cast<AddressSpace>(op->aux & memory_flags::kSpaceMask);
    if (__builtin_expect((span.bits & (bytes - 1)) != 0, 0))
        return misaligned(context, op, mask, space, bytes, is_write);
    switch (space) {
        case AddressSpace::global:
        case AddressSpace::constant: return resolve_global(context, op, mask, bytes, is_write, span);
        case AddressSpace::shared:
            return resolve_flat(context, op, mask, bytes, is_write, span, space, context.shared, context.shared_bytes);
        case AddressSpace::local: return resolve_local(context, op, mask, bytes, is_write, span);
        case AddressSpace::frame:
            for (int i = 0; i < 32; ++i) context.address[i] += context.frame;
            span.high += context.frame;
            return resolve_local(context, op, mask, bytes, is_write, span);
        case AddressSpace::kernel_param:
            return resolve_flat(context, op, mask, bytes, is_write, span, space, const_cast<uint8_t*>(context.params),
                                context.param_bytes);
        case AddressSpace::param: return resolve_param(context, op, mask, bytes, is_write, span);
        case AddressSpace::generic: return resolve_generic(context, op, mask, bytes, is_write, span);
    }
    return false;
}

}  // namespace
}  // namespace weft::engine::WEFT_ISA
