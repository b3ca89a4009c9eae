// Reads a module image or linker input from a file. FILE_NOT_FOUND, INVALID_VALUE for what is no readable file below
// 512 MiB.
#pragma once

#include <vector>

#include "gen/cuda_abi.h"

namespace weft::shim {

// A zero byte is appended: PTX text must end with one.
CUresult read_file(const char* path, std::vector<char>* bytes);

}  // namespace weft::shim
