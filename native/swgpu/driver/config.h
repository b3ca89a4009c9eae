// Settings of the software GPU, read once from the environment at cuInit. Bad values fall back to the default and are
// logged. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstdint>
#include <string>

namespace weft::swdriver {

struct Settings {
    int device_count = 1;                            // WEFT_SWGPU_DEVICES: 1..16
    std::uint64_t memory_bytes = 8ull << 30;         // WEFT_SWGPU_MEMORY_BYTES: of each device, a multiple of 2 MiB
    int capability_major = 8, capability_minor = 0;  // WEFT_SWGPU_COMPUTE_CAPABILITY: "8.0"
    int threads = 0;                                 // WEFT_SWGPU_THREADS: workers that run kernels; default: all cores
    std::string name = "Weft Software GPU";          // WEFT_SWGPU_NAME
};

// Reads the WEFT_SWGPU_* variables of this process.
Settings read_settings();

}  // namespace weft::swdriver
