// A box of device memory or of an array, and its copies as the driver wants them described. Design note:
// docs/design/executor.md, "Boxes".
#pragma once

#include <cstdint>

#include "base/box.h"
#include "gen/driver_table.h"

namespace weft::executor {

struct DeviceBox {
    std::uint64_t place = 0;  // address of the first byte; of an array nothing
    Pitches pitches;
    CUarray array = nullptr;
    std::uint32_t x = 0, y = 0, z = 0;  // corner in the array, x in bytes
    Box box;
};

// Rows of a box in memory of this process.
struct HostRows {
    void* base = nullptr;
    Pitches pitches;
};

// What is wrong with a box that a client sent: nullptr if nothing.
const char* check_box(const Box& box);
const char* check_rows(const Box& box, const Pitches& pitches);

// Between packed bytes [offset, offset + size) of the box and the device, in stream order. The bytes stay until then.
CUresult copy_packed_in(const driver::DriverTable& driver, const DeviceBox& to, std::uint64_t offset,
                        const std::byte* packed, std::uint64_t size, CUstream stream);
CUresult copy_packed_out(const driver::DriverTable& driver, std::byte* packed, const DeviceBox& from,
                         std::uint64_t offset, std::uint64_t size, CUstream stream);
// The whole box at once.
CUresult copy_rows_in(const driver::DriverTable& driver, const DeviceBox& to, const HostRows& from, CUstream stream);
CUresult copy_rows_out(const driver::DriverTable& driver, const HostRows& to, const DeviceBox& from, CUstream stream);
CUresult copy_box(const driver::DriverTable& driver, const DeviceBox& to, const DeviceBox& from, CUstream stream);

}  // namespace weft::executor
