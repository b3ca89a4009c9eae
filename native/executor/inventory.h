// What the driver says about its devices: for the reply to HELLO, for the probe of the server. Makes no context unless
// told. Design note: docs/design/executor.md.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "gen/driver_table.h"
#include "wire/describe.h"

namespace weft::executor {

// total_memory_bytes is the device's; attributes are those that the driver answers.
Result<wire::DeviceInfo> describe_device(const driver::DriverTable& driver, int ordinal);

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string format_uuid(const std::array<std::uint8_t, 16>& uuid);
// "CUDA_ERROR_X" for messages.
std::string name_of(CUresult result);

// The inventory of all devices as one JSON object; measures what one executor's context costs on each.
Result<std::string> probe(const driver::DriverTable& driver);

// A string as a JSON literal, quotes included.
std::string json_string(std::string_view text);

}  // namespace weft::executor
