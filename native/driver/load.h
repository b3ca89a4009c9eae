// Loads a driver library (NVIDIA's, the software GPU, the null driver) into a table of functions.
// Must not call into the library. Design note: docs/design/codegen.md.
#pragma once

#include "base/status.h"
#include "gen/driver_table.h"

namespace weft::driver {

// Opens the library with RTLD_NOW | RTLD_LOCAL and fills `table`. Errors name the library and what is wrong with it:
// not found, not a driver (a required symbol is missing), or Weft's own shim, which must never be its own driver.
Status load_driver_table(const char* path, DriverTable* table);

}  // namespace weft::driver
