// The control-flow graph of a function's drafts and where diverged lanes meet again. Design:
// docs/design/software-gpu.md.
#pragma once

#include <cstdint>
#include <vector>

#include "swgpu/engine/draft.h"

namespace weft::engine {

struct BasicBlock {
    uint32_t begin = 0;  // drafts
    uint32_t end = 0;
    std::vector<int32_t> successors;
    int32_t meeting = -1;  // the immediate post-dominator, when it ends in a conditional branch
};

struct FlowGraph {
    std::vector<BasicBlock> blocks;
    std::vector<int32_t> block_of_draft;
};

FlowGraph build_flow_graph(const std::vector<Draft>& drafts);

}  // namespace weft::engine
