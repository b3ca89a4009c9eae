// Executable graphs on the wire: their nodes are frames, sent once; a launch is one frame, an update of a node another.
// Design note: docs/design/graphs.md.
#pragma once

#include <memory>
#include <vector>

#include "graph/backend.h"

namespace weft::shim {

struct Context;
struct Event;

// What this side keeps of an executable graph.
struct ExecutableGraph final : graph::Executable {
    ~ExecutableGraph() override;
    // What a node needs of this process: numbers known to the callback thread and to the transfers, taken anew with
    // each change, as launches that still use the old ones may be under way.
    struct HostEnd {
        std::uint32_t call = 0;      // host function
        std::uint32_t pull = 0;      // bytes to be sent when they are asked for
        std::uint32_t transfer = 0;  // bytes that come
        std::shared_ptr<void> copy;  // of a copy from host to host, which is a host function
    };
    std::uint32_t number = 0;
    Context* context = nullptr;
    std::uint32_t context_number = 0;
    std::uint64_t stream = 0;            // handle of the stream of the last launch
    std::vector<HostEnd> ends;           // by node
    std::vector<HostEnd> old_ends;       // of nodes that were changed
    std::vector<std::uint32_t> records;  // nodes that record events, in order
    std::uint64_t last_work = 0;
};

}  // namespace weft::shim
