#define WEFT_ISA async_copy
#include "swgpu/engine/async_copy.h"

#include <cstring>

#include "swgpu/engine/address.h"

namespace weft::engine::async_copy {
namespace {

const Op* run_target(Context& context, const Op* op, uint32_t mask) {
    uint32_t size = row<const uint32_t>(context, op->c)[0];
    if (!resolve(context, op, mask, size, true)) return nullptr;
    blend(row<uint64_t>(context, op->d), context.address, mask);
    return op + 1;
}

const Op* run_copy(Context& context, const Op* op, uint32_t mask) {
    uint32_t size = row<const uint32_t>(context, op->c)[0];
    const uint32_t* asked = row<const uint32_t>(context, op->b);
    const uint64_t* to = row<const uint64_t>(context, op->e);
    uint32_t reads = 0;
    for (uint32_t i = 0; i < kWarpLanes; ++i) reads |= static_cast<uint32_t>(asked[i] != 0) << i;
    reads &= mask;
    // Lanes that ignore their source may have no valid address.
    if (reads != 0 && !resolve(context, op, reads, size, false)) return nullptr;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        uint32_t count = asked[lane] < size ? asked[lane] : size;
        uint8_t* target = reinterpret_cast<uint8_t*>(to[lane]);
        if (count > 0) std::memcpy(target, reinterpret_cast<const uint8_t*>(context.address[lane]), count);
        std::memset(target + count, 0, size - count);
    }
    return op + 1;
}

const Op* run_quad_load(Context& context, const Op* op, uint32_t mask) {
    if (!resolve(context, op, mask, 16, false)) return nullptr;
    uint8_t* d = row<uint8_t>(context, op->d);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        std::memcpy(d + 16 * lane, reinterpret_cast<const uint8_t*>(context.address[lane]), 16);
    }
    return op + 1;
}

const Op* run_quad_store(Context& context, const Op* op, uint32_t mask) {
    if (!resolve(context, op, mask, 16, true)) return nullptr;
    const uint8_t* b = row<const uint8_t>(context, op->b);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        std::memcpy(reinterpret_cast<uint8_t*>(context.address[lane]), b + 16 * lane, 16);
    }
    return op + 1;
}

}  // namespace
}  // namespace weft::engine::async_copy

namespace weft::engine {

Handler copy_target_handler() { return async_copy::run_target; }
Handler copy_handler() { return async_copy::run_copy; }
Handler quad_load_handler() { return async_copy::run_quad_load; }
Handler quad_store_handler() { return async_copy::run_quad_store; }

}  // namespace weft::engine
