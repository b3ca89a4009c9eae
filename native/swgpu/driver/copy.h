// Copies and fills as operations of a stream. A box of depth x height rows of `width` bytes covers 1D, 2D and 3D alike.
// Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstdint>
#include <vector>

#include "swgpu/driver/array.h"
#include "swgpu/driver/driver.h"

namespace weft::swdriver {

struct Side {
    std::uint64_t address = 0;  // of the first byte
    std::uint64_t row_pitch = 0;
    std::uint64_t plane_pitch = 0;
    bool device = false;  // checked against the device's allocations
    Ref<Array> array{};   // lies in this array instead, where the box was found to fit

    std::uint64_t row(std::uint64_t y, std::uint64_t z) const { return address + y * row_pitch + z * plane_pitch; }
};

struct Box {
    std::uint64_t width = 0, height = 1, depth = 1;
    bool empty() const { return width == 0 || height == 0 || depth == 0; }
    std::uint64_t bytes() const { return width * height * depth; }
};

// True if every byte that the box covers on this side may be accessed (host sides always).
bool covers(const Side& side, const Box& box, bool write);

struct CopyOperation final : WorkOperation {
    CUresult run() override;
    Side to, from;
    Box box;
    std::vector<unsigned char> staged;  // bytes taken at the call; `from` points into it
};

// The copy as an operation; INVALID_VALUE, or NOT_SUPPORTED for arrays. What it touches of the host is not looked at
// before it runs.
CUresult make_copy(const CUDA_MEMCPY3D& described, std::unique_ptr<CopyOperation>* copy);

struct FillOperation final : WorkOperation {
    CUresult run() override;
    Side to;
    Box box;  // width in bytes
    std::uint32_t pattern = 0;
    std::uint32_t unit = 1;  // 1, 2 or 4 bytes
};

}  // namespace weft::swdriver
