// Finds the names in a module image: kernels with their parameter layout, and global variables. For what a driver does
// not enumerate: globals always, kernels on drivers older than 12.4. Input may be damaged: every offset is checked.
// Pure. Formats: docs/design/executor.md, "Modules".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/describe.h"

namespace weft::executor {

enum class ImageKind : std::uint32_t { ptx = 1, elf = 2, fatbin = 3, linked = 4 };

struct KernelSymbol {
    std::string name;
    std::vector<wire::ParameterInfo> parameters;
};

struct ImageSymbols {
    std::vector<KernelSymbol> kernels;
    std::vector<std::string> globals;
};

// What can be found; parts that cannot be read are left out.
ImageSymbols scan_image(std::span<const std::byte> image);
// Whether kernels of the image may print (printf, assert). Code that cannot be read is taken to.
bool may_print(std::span<const std::byte> image);
void scan_ptx(std::string_view text, ImageSymbols* out);
void scan_elf(std::span<const std::byte> image, ImageSymbols* out);
void scan_fatbin(std::span<const std::byte> image, ImageSymbols* out);

}  // namespace weft::executor
