// How boxes of two and three dimensions travel between this process and device memory: by the same ways as the bytes of
// copy.h, but packed, so that the padding of rows never leaves. Sides have been checked by the caller.
#pragma once

#include "base/box.h"
#include "shim/copy.h"
#include "shim/objects.h"

namespace weft::shim {

// A place for a box on the device: memory, or the part of an array that begins at (x, y, z).
struct DeviceSide {
    std::uint64_t place = 0;  // address of the first byte, or number of the array
    Pitches pitches;          // of memory
    std::uint32_t x = 0, y = 0, z = 0;
    bool is_array = false;
};

struct HostSide {
    std::byte* base = nullptr;
    Pitches pitches;
};

// The two sides of a descriptor, each on the device or here.
struct CopySides {
    Box box;
    bool to_device = false, from_device = false;
    DeviceSide to_place, from_place;
    HostSide to_host, from_host;
};

template <typename Frame>
void fill_box_side(Frame& frame, const DeviceSide& side, const Box& box) {
    frame.place = side.place;
    frame.row_pitch = side.pitches.row;
    frame.plane_pitch = side.pitches.plane;
    frame.width = box.width;
    frame.height = box.height;
    frame.depth = box.depth;
    frame.x = side.x;
    frame.y = side.y;
    frame.z = side.z;
    frame.is_array = side.is_array ? 1 : 0;
}

CUresult copy_box_to_device(Stream& stream, const DeviceSide& to, const HostSide& from, const Box& box, CopyMode mode);
CUresult copy_box_from_device(Stream& stream, const HostSide& to, const DeviceSide& from, const Box& box,
                              CopyMode mode);
CUresult copy_box_within_device(Stream& stream, const DeviceSide& to, const DeviceSide& from, const Box& box);
// After the work before it in the stream.
CUresult copy_box_on_host(Stream& stream, const HostSide& to, const HostSide& from, const Box& box);

namespace api {
// Checks a descriptor as the copy itself does.
CUresult read_sides(const CUDA_MEMCPY3D& copy, CopySides* sides);
}  // namespace api

}  // namespace weft::shim
