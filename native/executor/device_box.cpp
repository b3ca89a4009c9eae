// See device_box.h.
#include "executor/device_box.h"

namespace weft::executor {
namespace {

constexpr std::uint64_t kMaxBoxBytes = 1ull << 47;

// The driver counts planes in rows.
std::uint64_t rows_per_plane(const Pitches& pitches) { return pitches.row != 0 ? pitches.plane / pitches.row : 0; }

std::uint64_t address_of(const DeviceBox& box, const BoxPart& part) {
    return box.place + part.z * box.pitches.plane + part.y * box.pitches.row + part.x;
}

void set_target(CUDA_MEMCPY3D& copy, const DeviceBox& to, const BoxPart& part) {
    copy.dstMemoryType = to.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
    if (to.array != nullptr) {
        copy.dstArray = to.array;
        copy.dstXInBytes = to.x + part.x;
        copy.dstY = to.y + part.y;
        copy.dstZ = to.z + part.z;
        return;
    }
    copy.dstDevice = address_of(to, part);
    copy.dstPitch = to.pitches.row;
    copy.dstHeight = rows_per_plane(to.pitches);
}

void set_source(CUDA_MEMCPY3D& copy, const DeviceBox& from, const BoxPart& part) {
    copy.srcMemoryType = from.array != nullptr ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
    if (from.array != nullptr) {
        copy.srcArray = from.array;
        copy.srcXInBytes = from.x + part.x;
        copy.srcY = from.y + part.y;
        copy.srcZ = from.z + part.z;
        return;
    }
    copy.srcDevice = address_of(from, part);
    copy.srcPitch = from.pitches.row;
    copy.srcHeight = rows_per_plane(from.pitches);
}

void set_host_target(CUDA_MEMCPY3D& copy, void* base, const Pitches& pitches) {
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = base;
    copy.dstPitch = pitches.row;
    copy.dstHeight = rows_per_plane(pitches);
}

void set_host_source(CUDA_MEMCPY3D& copy, const void* base, const Pitches& pitches) {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = base;
    copy.srcPitch = pitches.row;
    copy.srcHeight = rows_per_plane(pitches);
}

CUresult submit(const driver::DriverTable& driver, CUDA_MEMCPY3D& copy, const Box& size, CUstream stream) {
    if (driver.cuMemcpy3DAsync_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    copy.WidthInBytes = size.width;
    copy.Height = size.height;
    copy.Depth = size.depth;
    return driver.cuMemcpy3DAsync_v2(&copy, stream);
}

Pitches packed_pitches(const Box& box) { return {box.width, box.width * box.height}; }

}  // namespace

const char* check_box(const Box& box) {
    const auto bytes = box.bytes();
    return box.is_empty() || !bytes || *bytes > kMaxBoxBytes ? "an impossible box" : nullptr;
}

const char* check_rows(const Box& box, const Pitches& pitches) {
    if (!pitches.span(box)) return "rows beyond the address space";
    if (box.height > 1 && pitches.row < box.width) return "rows that overlap";
    if (box.depth > 1 && (pitches.row == 0 || pitches.plane % pitches.row != 0 || rows_per_plane(pitches) < box.height))
        return "planes that overlap";
    return nullptr;
}

CUresult copy_packed_in(const driver::DriverTable& driver, const DeviceBox& to, std::uint64_t offset,
                        const std::byte* packed, std::uint64_t size, CUstream stream) {
    for (const BoxPart& part : parts_of(to.box, offset, size)) {
        const std::byte* bytes = packed + (part.packed_offset - offset);
        CUDA_MEMCPY3D copy{};
        set_host_source(copy, bytes, packed_pitches(part.size));
        set_target(copy, to, part);
        const bool is_row = to.array == nullptr && part.size.height == 1 && part.size.depth == 1;
        const CUresult result = is_row
                                    ? driver.cuMemcpyHtoDAsync_v2(address_of(to, part), bytes, part.size.width, stream)
                                    : submit(driver, copy, part.size, stream);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult copy_packed_out(const driver::DriverTable& driver, std::byte* packed, const DeviceBox& from,
                         std::uint64_t offset, std::uint64_t size, CUstream stream) {
    for (const BoxPart& part : parts_of(from.box, offset, size)) {
        std::byte* bytes = packed + (part.packed_offset - offset);
        CUDA_MEMCPY3D copy{};
        set_source(copy, from, part);
        set_host_target(copy, bytes, packed_pitches(part.size));
        const bool is_row = from.array == nullptr && part.size.height == 1 && part.size.depth == 1;
        const CUresult result =
            is_row ? driver.cuMemcpyDtoHAsync_v2(bytes, address_of(from, part), part.size.width, stream)
                   : submit(driver, copy, part.size, stream);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult copy_rows_in(const driver::DriverTable& driver, const DeviceBox& to, const HostRows& from, CUstream stream) {
    CUDA_MEMCPY3D copy{};
    set_host_source(copy, from.base, from.pitches);
    set_target(copy, to, {});
    return submit(driver, copy, to.box, stream);
}

CUresult copy_rows_out(const driver::DriverTable& driver, const HostRows& to, const DeviceBox& from, CUstream stream) {
    CUDA_MEMCPY3D copy{};
    set_source(copy, from, {});
    set_host_target(copy, to.base, to.pitches);
    return submit(driver, copy, from.box, stream);
}

CUresult copy_box(const driver::DriverTable& driver, const DeviceBox& to, const DeviceBox& from, CUstream stream) {
    CUDA_MEMCPY3D copy{};
    set_target(copy, to, {});
    set_source(copy, from, {});
    return submit(driver, copy, to.box, stream);
}

}  // namespace weft::executor
