// Fat binaries as nvcc leaves them in the program: a wrapper (fatbinary_section.h of the toolkit) around an image, or
// around the parts of a program compiled separately, which are linked when they are first used.
#pragma once

#include "cudart/abi.h"

namespace weft::cudart {

// With a current context.
cudaError_t load_fat_binary(const void* wrapper, CUlibrary* library);

}  // namespace weft::cudart
