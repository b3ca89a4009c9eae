// What a graph node does, as the frame that would do it in a stream.
#pragma once

#include "shim/graphs.h"
#include "shim/objects.h"

namespace weft::shim {

// The frame of the work; empty if it needs none. Registers what it needs of this process in *end.
CUresult encode_work(const graph::Work& work, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* frame);
void drop_end(const ExecutableGraph::HostEnd& end);

}  // namespace weft::shim
