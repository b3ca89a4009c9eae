// CUDA arrays, and textures and surfaces over arrays or memory. An array's bytes lie row by row in device memory that
// no kernel can address. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <optional>

#include "swgpu/driver/driver.h"
#include "swgpu/engine/texture.h"

namespace weft::swdriver {

// Bytes of one channel and the engine's name of an array format; nullopt: a format that is not supported.
std::optional<engine::TexelFormat> texel_format(CUarray_format format);

class Array final : public Object {
  public:
    static constexpr Kind kKind = Kind::array;
    Array(Ref<Context> context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t address);
    ~Array() override;

    Context& context() const { return *context_; }
    const CUDA_ARRAY3D_DESCRIPTOR& descriptor() const { return descriptor_; }
    std::uint64_t address() const { return address_; }
    // As memory: a height and depth of 0 are 1.
    std::uint64_t row_bytes() const { return row_bytes_; }
    std::uint64_t rows() const { return descriptor_.Height != 0 ? descriptor_.Height : 1; }
    std::uint64_t planes() const { return descriptor_.Depth != 0 ? descriptor_.Depth : 1; }

  private:
    const Ref<Context> context_;
    const CUDA_ARRAY3D_DESCRIPTOR descriptor_;
    const std::uint64_t address_;
    const std::uint64_t row_bytes_;
};

// A texture or surface object.
class TextureObject final : public Object {
  public:
    static constexpr Kind kKind = Kind::texture;
    explicit TextureObject(Ref<Context> context) : Object(kKind), context_(std::move(context)) {}
    Context& context() const { return *context_; }
    engine::Texture texture;
    Ref<Array> array;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC description{};

  private:
    const Ref<Context> context_;
};

}  // namespace weft::swdriver
