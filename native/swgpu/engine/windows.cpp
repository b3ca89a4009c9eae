#include "swgpu/engine/windows.h"

#include <cstring>

#include "swgpu/engine/image.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {
namespace {

template <class T>
T* row(Context& context, Ref ref) {
    return reinterpret_cast<T*>(context.base[ref & kConstantBit] + (ref & ~3u));
}

template <class Visit>
const Op* each_lane(const Op* op, uint32_t mask, Visit&& visit) {
    for (uint32_t left = mask; left != 0; left &= left - 1) visit(static_cast<uint32_t>(__builtin_ctz(left)));
    return op + 1;
}

const Op* run_window_add(Context& context, const Op* op, uint32_t mask) {
    const uint64_t* a = row<const uint64_t>(context, op->a);
    uint64_t* d = row<uint64_t>(context, op->d);
    return each_lane(op, mask, [&](uint32_t i) { d[i] = (a[i] & (kWindowBytes - 1)) + op->imm; });
}

const Op* run_window_subtract(Context& context, const Op* op, uint32_t mask) {
    const uint64_t* a = row<const uint64_t>(context, op->a);
    uint64_t* d = row<uint64_t>(context, op->d);
    return each_lane(op, mask, [&](uint32_t i) { d[i] = a[i] - op->imm; });
}

bool is_constant(const KernelImage& image, uint64_t address) {
    for (auto [begin, end] : image.constant_ranges) {
        if (begin <= address && address < end) return true;
    }
    return false;
}

const Op* run_space_test(Context& context, const Op* op, uint32_t mask) {
    const uint64_t* a = row<const uint64_t>(context, op->a);
    uint32_t* word = row<uint32_t>(context, op->d);
    auto space = static_cast<AddressSpace>(op->imm);
    return each_lane(op, mask, [&](uint32_t i) {
        uint64_t window = a[i] & ~(kWindowBytes - 1);
        bool inside = false;
        switch (space) {
            case AddressSpace::shared: inside = window == kSharedWindow; break;
            case AddressSpace::local: inside = window == kLocalWindow; break;
            case AddressSpace::param: inside = window == kParamWindow; break;
            case AddressSpace::constant: inside = is_constant(*context.image, a[i]); break;
            default: inside = a[i] < kFirstWindow && !is_constant(*context.image, a[i]); break;
        }
        *word = inside ? *word | 1u << i : *word & ~(1u << i);
    });
}

const Op* run_move_quad(Context& context, const Op* op, uint32_t mask) {
    const uint8_t* a = row<const uint8_t>(context, op->a);
    uint8_t* d = row<uint8_t>(context, op->d);
    return each_lane(op, mask, [&](uint32_t i) { std::memmove(d + 16 * i, a + 16 * i, 16); });
}

template <bool Packs, uint32_t Count>
const Op* run_pack_quad(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* refs = context.aux + op->e / 4;
    constexpr uint32_t kPart = 16 / Count;
    return each_lane(op, mask, [&](uint32_t i) {
        uint8_t whole[16];
        if (!Packs) std::memcpy(whole, row<const uint8_t>(context, op->a) + 16 * i, 16);
        for (uint32_t k = 0; k < Count; ++k) {
            if (refs[k] == kNoRef) continue;
            uint8_t* part = row<uint8_t>(context, refs[k]) + kPart * i;
            if (Packs)
                std::memcpy(whole + kPart * k, part, kPart);
            else
                std::memcpy(part, whole + kPart * k, kPart);
        }
        if (Packs) std::memcpy(row<uint8_t>(context, op->d) + 16 * i, whole, 16);
    });
}

int64_t saturated(int32_t value, ptx::Type type) {
    int64_t low = type == ptx::Type::s8 ? -128 : type == ptx::Type::s16 ? -32768 : 0;
    int64_t high = type == ptx::Type::s8 ? 127 : type == ptx::Type::u8 ? 255 : type == ptx::Type::s16 ? 32767 : 65535;
    return value < low ? low : value > high ? high : value;
}

// The first source goes to the upper part; c's lower part follows above for bytes.
const Op* run_convert_pack(Context& context, const Op* op, uint32_t mask) {
    auto type = static_cast<ptx::Type>(op->imm);
    uint32_t bits = ptx::size_of(type) * 8, part = (1u << bits) - 1;
    const int32_t* a = row<const int32_t>(context, op->a);
    const int32_t* b = row<const int32_t>(context, op->b);
    const uint32_t* c = op->c == kNoRef ? nullptr : row<const uint32_t>(context, op->c);
    uint32_t* d = row<uint32_t>(context, op->d);
    return each_lane(op, mask, [&](uint32_t i) {
        uint32_t low = (static_cast<uint32_t>(saturated(a[i], type)) & part) << bits |
                       (static_cast<uint32_t>(saturated(b[i], type)) & part);
        d[i] = c ? (c[i] << 16) | low : low;
    });
}

}  // namespace

Handler window_add_handler() { return run_window_add; }
Handler window_subtract_handler() { return run_window_subtract; }
Handler space_test_handler() { return run_space_test; }
Handler move_quad_handler() { return run_move_quad; }
Handler convert_pack_handler() { return run_convert_pack; }

Handler pack_quad_handler(bool packs, uint32_t count) {
    if (count == 2) return packs ? run_pack_quad<true, 2> : run_pack_quad<false, 2>;
    if (count == 4) return packs ? run_pack_quad<true, 4> : run_pack_quad<false, 4>;
    return nullptr;
}

}  // namespace weft::engine
