// What a graph node does, as the frame that would do it in a stream.
#pragma once

#include "shim/graphs.h"
#include "shim/objects.h"

namespace weft::shim {

// A copy of a graph: its sides as one dimension, with the place told by the address where it is UNIFIED.
struct CopySides {
    bool to_device = false, from_device = false;
    CUdeviceptr destination = 0, source = 0;  // device or host addresses
    std::uint64_t size_bytes = 0;
};
// INVALID_VALUE, or NOT_SUPPORTED for what graphs do not copy.
CUresult read_copy(const CUDA_MEMCPY3D& copy, CopySides* sides);

// The frame of the work; empty if it needs none. Registers what it needs of this process in *end.
CUresult encode_work(const graph::Work& work, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* frame);
void drop_end(const ExecutableGraph::HostEnd& end);

}  // namespace weft::shim
