// Instructions in which the lanes of a warp see each other. Design: docs/design/software-gpu.md.
#pragma once

#include "swgpu/engine/op.h"
#include "swgpu/ptx/types.h"

namespace weft::engine {

enum class ShuffleMode : uint8_t { up, down, bfly, idx };
enum class VoteMode : uint8_t { all, any, uni, ballot };
enum class ReduxOp : uint8_t { add, min, max, bit_and, bit_or, bit_xor };

// The lanes that must take part are in the row Op::imm names (a reference), or all when it is kNoRef: the forms without
// .sync.
Handler shuffle_handler(ShuffleMode mode);          // d|e = a from lane b, clamp c
Handler vote_handler(VoteMode mode);                // predicate d (or word d for ballot) of predicate a
Handler match_handler(bool all, bool wide);         // word d, predicate e, of a
Handler redux_handler(ReduxOp op, ptx::Type type);  // word d of a; null when there is no such form
Handler elect_handler();                            // word d, predicate e
Handler active_mask_handler();                      // word d

}  // namespace weft::engine
