// Allocating and freeing by kind, shared by the groups of calls. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstdint>
#include <optional>

#include "swgpu/driver/driver.h"

namespace weft::swdriver {

// Device memory of exactly `size` bytes that kernels may touch; nullopt: out of memory. `pool`: handle of the pool that
// counts it.
std::optional<std::uint64_t> allocate_device(Device& device, const Context& context, std::uint64_t size,
                                             MemoryKind kind, std::uint64_t pool = 0, bool managed = false);
// Frees device memory or a module's global that starts at this address. False: there is none.
bool free_device(std::uint64_t address, MemoryKind kind);
// Gives back what an allocation record stands for, of any kind but a mapping.
void free_allocation(const Allocation& allocation);

}  // namespace weft::swdriver
