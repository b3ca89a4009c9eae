// Module images: what kind an image is, and its PTX texts as one program of the engine. Knows no contexts.
// Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gen/cuda_abi.h"
#include "swgpu/engine/engine.h"

namespace weft::swdriver {

using ProgramPtr = std::shared_ptr<const engine::Program>;

// A program, or why there is none, with a text for the JIT log.
struct Loaded {
    CUresult result = CUDA_SUCCESS;
    ProgramPtr program;
    std::string log;
};

// The PTX texts inside an image that may run on a device of this compute capability (10 * major + minor). `size`: of
// the image where the caller knows it, else 0 (the image then tells its own size). Texts lie in the image, or in
// `decompressed` if they were compressed there.
struct Texts {
    CUresult result = CUDA_SUCCESS;
    std::string log;
    std::vector<std::string_view> texts;
    std::vector<std::byte> decompressed;
};
Texts find_texts(const void* image, std::size_t size, unsigned device_sm);

// Compiles one text; equal texts are compiled once.
Loaded compile_text(std::string_view text, unsigned device_sm);
// Compiles and links all texts of an image.
Loaded load_image(const void* image, std::size_t size, unsigned device_sm);
Loaded link_programs(std::span<const ProgramPtr> programs);

// The result of a link as an image: it reads as PTX text, ends with a NUL, and find_texts takes it apart again.
std::string pack_linked(std::span<const std::string> texts);

// The caller's JIT options.
class JitOptions {
  public:
    JitOptions(unsigned count, CUjit_option* options, void** values)
        : count_(count), options_(options), values_(values) {}
    CUresult check() const;
    void report(CUresult result, std::string_view log);  // fills the log buffers and their sizes
    bool has_error_log() const { return find(CU_JIT_ERROR_LOG_BUFFER) != nullptr; }

  private:
    void** find(CUjit_option option) const;
    void fill(CUjit_option buffer, CUjit_option size, std::string_view text);

    unsigned count_;
    CUjit_option* options_;
    void** values_;
};

// Tells the log of a failed load where the program gave no buffer for it.
void log_failed_load(const Loaded& loaded, const JitOptions& options);

}  // namespace weft::swdriver
