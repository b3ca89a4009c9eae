#include "swgpu/engine/collective.h"

#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

template <class T>
T* row(Context& context, Ref ref) {
    return reinterpret_cast<T*>(context.base[ref & kConstantBit] + (ref & ~3u));
}

uint32_t predicate(Context& context, Ref ref) {
    uint32_t value = *row<const uint32_t>(context, ref);
    return ref & kNegatedBit ? ~value : value;
}

void set_predicate(Context& context, Ref ref, uint32_t value, uint32_t mask) {
    if (ref == kNoRef) return;
    uint32_t* word = row<uint32_t>(context, ref);
    *word = (*word & ~mask) | (value & mask);
}

void set_word(Context& context, Ref ref, uint32_t value, uint32_t mask) {
    uint32_t* d = row<uint32_t>(context, ref);
    for (uint32_t left = mask; left != 0; left &= left - 1) d[__builtin_ctz(left)] = value;
}

uint32_t members_of(Context& context, const Op* op, uint32_t mask) {
    Ref ref = static_cast<Ref>(op->imm);
    if (ref == kNoRef) return mask;
    return row<const uint32_t>(context, ref)[__builtin_ctz(mask)];
}

// Runs `body(lanes)` once all members are here. When they are not, the split has been put aside.
template <class Body>
const Op* collective(Context& context, const Op* op, uint32_t mask, Body&& body) {
    uint32_t lanes = gather_members(context, op, mask, members_of(context, op, mask));
    if (lanes == 0) return context.active != 0 ? op + 1 : nullptr;
    body(lanes);
    return op + 1;
}

template <ShuffleMode Mode>
const Op* run_shuffle(Context& context, const Op* op, uint32_t mask) {
    return collective(context, op, mask, [&](uint32_t lanes) {
        const uint32_t* a = row<const uint32_t>(context, op->a);
        const uint32_t* b = row<const uint32_t>(context, op->b);
        const uint32_t* c = row<const uint32_t>(context, op->c);
        uint32_t* d = row<uint32_t>(context, op->d);
        alignas(64) uint32_t result[kWarpLanes];
        uint32_t inside = 0;
        for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
            uint32_t value = b[lane] & 0x1f, clamp = c[lane] & 0x1f, segment = (c[lane] >> 8) & 0x1f;
            uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment, from = 0;
            bool good = false;
            if (Mode == ShuffleMode::up) {
                good = static_cast<int32_t>(lane - value) >= static_cast<int32_t>(most);
                from = lane - value;
            } else if (Mode == ShuffleMode::down) {
                from = lane + value;
                good = from <= most;
            } else if (Mode == ShuffleMode::bfly) {
                from = lane ^ value;
                good = from <= most;
            } else {
                from = least | (value & ~segment);
                good = from <= most;
            }
            if (!good) from = lane;
            inside |= static_cast<uint32_t>(good) << lane;
            result[lane] = a[from & 31];
        }
        for (uint32_t lane = 0; lane < kWarpLanes; ++lane) d[lane] = lanes >> lane & 1 ? result[lane] : d[lane];
        set_predicate(context, op->e, inside, lanes);
    });
}

template <VoteMode Mode>
const Op* run_vote(Context& context, const Op* op, uint32_t mask) {
    return collective(context, op, mask, [&](uint32_t lanes) {
        uint32_t set = predicate(context, op->a) & lanes;
        if (Mode == VoteMode::ballot) {
            set_word(context, op->d, set, lanes);
            return;
        }
        bool result = Mode == VoteMode::all   ? set == lanes
                      : Mode == VoteMode::any ? set != 0
                                              : set == lanes || set == 0;
        set_predicate(context, op->d, result ? kFullMask : 0, lanes);
    });
}

template <bool All, class T>
const Op* run_match(Context& context, const Op* op, uint32_t mask) {
    return collective(context, op, mask, [&](uint32_t lanes) {
        const T* a = row<const T>(context, op->a);
        uint32_t* d = row<uint32_t>(context, op->d);
        uint32_t result[kWarpLanes] = {};
        for (uint32_t left = lanes; left != 0; left &= left - 1) {
            uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
            for (uint32_t others = lanes; others != 0; others &= others - 1) {
                uint32_t other = static_cast<uint32_t>(__builtin_ctz(others));
                result[lane] |= static_cast<uint32_t>(a[other] == a[lane]) << other;
            }
        }
        bool all = result[__builtin_ctz(lanes)] == lanes;
        for (uint32_t left = lanes; left != 0; left &= left - 1) {
            uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
            d[lane] = All ? (all ? lanes : 0) : result[lane];
        }
        if (All) set_predicate(context, op->e, all ? kFullMask : 0, lanes);
    });
}

template <ReduxOp Kind, class T>
const Op* run_redux(Context& context, const Op* op, uint32_t mask) {
    return collective(context, op, mask, [&](uint32_t lanes) {
        const T* a = row<const T>(context, op->a);
        T total = a[__builtin_ctz(lanes)];
        for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
            T value = a[__builtin_ctz(left)];
            if (Kind == ReduxOp::add)
                total = static_cast<T>(static_cast<uint32_t>(total) + static_cast<uint32_t>(value));
            if (Kind == ReduxOp::min) total = value < total ? value : total;
            if (Kind == ReduxOp::max) total = value > total ? value : total;
            if (Kind == ReduxOp::bit_and) total &= value;
            if (Kind == ReduxOp::bit_or) total |= value;
            if (Kind == ReduxOp::bit_xor) total ^= value;
        }
        set_word(context, op->d, static_cast<uint32_t>(total), lanes);
    });
}

const Op* run_elect(Context& context, const Op* op, uint32_t mask) {
    return collective(context, op, mask, [&](uint32_t lanes) {
        uint32_t leader = static_cast<uint32_t>(__builtin_ctz(lanes));
        if (op->d != kNoRef) set_word(context, op->d, leader, lanes);
        set_predicate(context, op->e, 1u << leader, lanes);
    });
}

const Op* run_active_mask(Context& context, const Op* op, uint32_t mask) {
    set_word(context, op->d, mask, mask);
    return op + 1;
}

template <class T>
Handler redux_of(ReduxOp op) {
    switch (op) {
        case ReduxOp::add: return run_redux<ReduxOp::add, T>;
        case ReduxOp::min: return run_redux<ReduxOp::min, T>;
        case ReduxOp::max: return run_redux<ReduxOp::max, T>;
        default: return nullptr;
    }
}

}  // namespace

Handler shuffle_handler(ShuffleMode mode) {
    switch (mode) {
        case ShuffleMode::up: return run_shuffle<ShuffleMode::up>;
        case ShuffleMode::down: return run_shuffle<ShuffleMode::down>;
        case ShuffleMode::bfly: return run_shuffle<ShuffleMode::bfly>;
        case ShuffleMode::idx: return run_shuffle<ShuffleMode::idx>;
    }
    return nullptr;
}

Handler vote_handler(VoteMode mode) {
    switch (mode) {
        case VoteMode::all: return run_vote<VoteMode::all>;
        case VoteMode::any: return run_vote<VoteMode::any>;
        case VoteMode::uni: return run_vote<VoteMode::uni>;
        case VoteMode::ballot: return run_vote<VoteMode::ballot>;
    }
    return nullptr;
}

Handler match_handler(bool all, bool wide) {
    if (all) return wide ? run_match<true, uint64_t> : run_match<true, uint32_t>;
    return wide ? run_match<false, uint64_t> : run_match<false, uint32_t>;
}

Handler redux_handler(ReduxOp op, ptx::Type type) {
    if (type == ptx::Type::u32) return redux_of<uint32_t>(op);
    if (type == ptx::Type::s32) return redux_of<int32_t>(op);
    if (type != ptx::Type::b32) return nullptr;
    switch (op) {
        case ReduxOp::bit_and: return run_redux<ReduxOp::bit_and, uint32_t>;
        case ReduxOp::bit_or: return run_redux<ReduxOp::bit_or, uint32_t>;
        case ReduxOp::bit_xor: return run_redux<ReduxOp::bit_xor, uint32_t>;
        default: return nullptr;
    }
}

Handler elect_handler() { return run_elect; }
Handler active_mask_handler() { return run_active_mask; }

}  // namespace weft::engine
