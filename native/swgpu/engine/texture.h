// Textures and surfaces as kernels see them, and the handlers of tex, tld4, suld, sust and txq. Filtering follows the
// appendix on texture fetching of the CUDA programming guide: weights have 8 bits of fraction. There is no hardware to
// hide latency from, so a texel is fetched when it is asked for. Design: docs/design/software-gpu.md.
#pragma once

#include <array>
#include <cstdint>

#include "swgpu/engine/op.h"

namespace weft::engine {

enum class TexelFormat : uint8_t { u8, u16, u32, s8, s16, s32, f16, f32 };
enum class TextureAddress : uint8_t { wrap, clamp, mirror, border };

constexpr uint32_t bytes_of(TexelFormat format) {
    constexpr uint8_t kBytes[] = {1, 2, 4, 1, 2, 4, 2, 4};
    return kBytes[static_cast<size_t>(format)];
}

// What a handle stands for. The driver owns it and keeps it and its memory for as long as a kernel may use the handle.
struct Texture {
    uint8_t* data = nullptr;
    uint32_t width = 1, height = 1, depth = 1;  // texels; of layered ones depth counts layers
    uint64_t row_pitch = 0, plane_pitch = 0;
    TexelFormat format = TexelFormat::f32;
    uint32_t channels = 1;
    bool is_layered = false;
    bool is_buffer = false;  // linear memory: texels outside are zero
    bool is_memory = false;  // of the program: it may have been freed, so it is looked up
    bool is_surface = false;
    std::array<TextureAddress, 3> address{TextureAddress::clamp, TextureAddress::clamp, TextureAddress::clamp};
    bool filters = false;
    bool is_normalized = false;  // coordinates
    bool reads_floats = false;   // integer texels as [0, 1] or [-1, 1]
    std::array<float, 4> border{};

    uint32_t texel_bytes() const { return bytes_of(format) * channels; }
};

// The memory of a launch whose kernel has such instructions is one of these.
class TextureMap : public MemoryMap {
  public:
    // What a handle stands for; null: nothing. It stays as long as kernels that may use it run.
    virtual const Texture* texture(uint64_t handle) const = 0;
};

enum class TextureShape : uint32_t { one, two, three, one_layered, two_layered };
enum class TextureQuery : uint32_t { width, height, depth, array_size, mipmap_levels, samples };
enum class SurfaceBounds : uint32_t { trap, clamp, zero };

// Op::aux of these handlers.
namespace texture_flags {
inline constexpr uint32_t kShapeMask = 7;
inline constexpr uint32_t kIntegers = 8;  // coordinates
inline constexpr uint32_t kComponentShift = 4;
inline constexpr uint32_t kBytesShift = 8;   // of a surface's element: 4 bits
inline constexpr uint32_t kCountShift = 12;  // elements: 4 bits
inline constexpr uint32_t kBoundsShift = 16;
}  // namespace texture_flags

// Op::e is a list: four results, the handle, the coordinates.
Handler texture_handler();
Handler gather_handler();
// Op::e is a list: the elements, the handle, the coordinates; x counts bytes.
Handler surface_load_handler();
Handler surface_store_handler();
// Op::d is the result, Op::a the handle, Op::imm a TextureQuery.
Handler texture_query_handler();

}  // namespace weft::engine
