#define WEFT_ISA texture
#include "swgpu/engine/texture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "swgpu/engine/address.h"
#include "swgpu/engine/float_ops.h"

namespace weft::engine::texture {
namespace {

using namespace texture_flags;

struct Texel {
    float f[4] = {0, 0, 0, 0};
    uint32_t u[4] = {0, 0, 0, 0};
};

bool gives_floats(const Texture& t) {
    if (t.format == TexelFormat::f16 || t.format == TexelFormat::f32) return true;
    return t.reads_floats && bytes_of(t.format) < 4;
}

uint64_t load(const uint8_t* from, uint32_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
}

float float_of(TexelFormat format, uint32_t bits) {
    switch (format) {
        case TexelFormat::u8: return static_cast<float>(bits) / 255.0f;
        case TexelFormat::u16: return static_cast<float>(bits) / 65535.0f;
        case TexelFormat::s8: return std::max(static_cast<float>(static_cast<int8_t>(bits)) / 127.0f, -1.0f);
        case TexelFormat::s16: return std::max(static_cast<float>(static_cast<int16_t>(bits)) / 32767.0f, -1.0f);
        case TexelFormat::f16: return f32_from_f16(bits);
        default: return f32_of(bits);
    }
}

uint32_t integer_of(TexelFormat format, uint32_t bits) {
    if (format == TexelFormat::s8) return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(bits)));
    if (format == TexelFormat::s16) return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(bits)));
    return bits;
}

// Indices are inside.
Texel texel_at(const Texture& t, int64_t x, int64_t y, int64_t z) {
    const uint8_t* from = t.data + static_cast<uint64_t>(z) * t.plane_pitch + static_cast<uint64_t>(y) * t.row_pitch +
                          static_cast<uint64_t>(x) * t.texel_bytes();
    Texel texel;
    bool floats = gives_floats(t);
    for (uint32_t c = 0; c < t.channels; ++c) {
        auto bits = static_cast<uint32_t>(load(from + c * bytes_of(t.format), bytes_of(t.format)));
        if (floats)
            texel.f[c] = float_of(t.format, bits);
        else
            texel.u[c] = integer_of(t.format, bits);
    }
    return texel;
}

Texel border_of(const Texture& t) {
    Texel texel;
    for (uint32_t c = 0; c < 4; ++c) {
        texel.f[c] = t.is_buffer ? 0.0f : t.border[c];
        texel.u[c] = t.is_buffer ? 0 : static_cast<uint32_t>(static_cast<int32_t>(t.border[c]));
    }
    return texel;
}

// The texel that an index means; -1: the border. Wrapping and mirroring are for normalised coordinates only.
int64_t place(int64_t i, int64_t n, TextureAddress mode, bool is_normalized) {
    if (i >= 0 && i < n) return i;
    if (mode == TextureAddress::border) return -1;
    if (is_normalized && mode == TextureAddress::wrap) return ((i % n) + n) % n;
    if (is_normalized && mode == TextureAddress::mirror) {
        int64_t m = ((i % (2 * n)) + 2 * n) % (2 * n);
        return m < n ? m : 2 * n - 1 - m;
    }
    return i < 0 ? 0 : n - 1;
}

// Dimensions that coordinates run over; a layer is taken apart.
struct Extent {
    uint32_t dimensions;
    bool is_layered;
};
Extent extent_of(uint32_t aux) {
    switch (static_cast<TextureShape>(aux & kShapeMask)) {
        case TextureShape::one: return {1, false};
        case TextureShape::two: return {2, false};
        case TextureShape::three: return {3, false};
        case TextureShape::one_layered: return {1, true};
        case TextureShape::two_layered: return {2, true};
    }
    return {1, false};
}

int64_t size_of(const Texture& t, uint32_t dimension) {
    return dimension == 0 ? t.width : dimension == 1 ? t.height : t.depth;
}

Texel fetch(const Texture& t, const int64_t (&index)[3], uint32_t dimensions, int64_t layer) {
    int64_t at[3] = {0, 0, 0};
    for (uint32_t d = 0; d < dimensions; ++d) {
        at[d] = t.is_buffer ? (index[d] >= 0 && index[d] < t.width ? index[d] : -1)
                            : place(index[d], size_of(t, d), t.address[d], t.is_normalized);
        if (at[d] < 0) return border_of(t);
    }
    if (layer >= 0) at[2] = layer;
    return texel_at(t, at[0], at[1], at[2]);
}

// Bounded, so that what follows stays within 64 bits; not a number is 0.
double bounded(float coordinate) {
    if (std::isnan(coordinate)) return 0.0;
    return std::clamp(static_cast<double>(coordinate), -1e9, 1e9);
}

double scaled(const Texture& t, float coordinate, uint32_t dimension) {
    double value = bounded(coordinate);
    return t.is_normalized ? value * static_cast<double>(size_of(t, dimension)) : value;
}

// Weights have 8 bits of fraction, so that 1.0 is exact.
double weight_of(double fraction) { return std::floor(fraction * 256.0 + 0.5) / 256.0; }

Texel sample_linear(const Texture& t, const float (&x)[3], uint32_t dimensions, int64_t layer) {
    int64_t base[3] = {0, 0, 0};
    double weight[3] = {0, 0, 0};
    for (uint32_t d = 0; d < dimensions; ++d) {
        double at = scaled(t, x[d], d) - 0.5, low = std::floor(at);
        base[d] = static_cast<int64_t>(low);
        weight[d] = weight_of(at - low);
    }
    double sum[4] = {0, 0, 0, 0};
    for (uint32_t corner = 0; corner < 1u << dimensions; ++corner) {
        double share = 1.0;
        int64_t index[3] = {0, 0, 0};
        for (uint32_t d = 0; d < dimensions; ++d) {
            bool upper = (corner >> d & 1) != 0;
            share *= upper ? weight[d] : 1.0 - weight[d];
            index[d] = base[d] + (upper ? 1 : 0);
        }
        if (share == 0.0) continue;
        Texel texel = fetch(t, index, dimensions, layer);
        for (uint32_t c = 0; c < 4; ++c) sum[c] += share * static_cast<double>(texel.f[c]);
    }
    Texel result;
    for (uint32_t c = 0; c < 4; ++c) result.f[c] = static_cast<float>(sum[c]);
    return result;
}

Texel sample(const Texture& t, const float (&x)[3], uint32_t dimensions, int64_t layer) {
    if (t.filters && gives_floats(t)) return sample_linear(t, x, dimensions, layer);
    int64_t index[3] = {0, 0, 0};
    for (uint32_t d = 0; d < dimensions; ++d) index[d] = static_cast<int64_t>(std::floor(scaled(t, x[d], d)));
    return fetch(t, index, dimensions, layer);
}

// The coordinates of one lane: floats or integers, behind the layer if there is one.
struct Coordinates {
    float x[3] = {0, 0, 0};
    int64_t i[3] = {0, 0, 0};
    int64_t layer = -1;
};

Coordinates coordinates_of(Context& context, const Op* op, const uint32_t* refs, uint32_t lane, const Texture& t) {
    Extent extent = extent_of(op->aux);
    Coordinates found;
    if (extent.is_layered) {
        auto layer = static_cast<int32_t>(row<const uint32_t>(context, *refs++)[lane]);
        found.layer = std::clamp<int64_t>(layer, 0, static_cast<int64_t>(t.depth) - 1);
    }
    for (uint32_t d = 0; d < extent.dimensions; ++d) {
        uint32_t bits = row<const uint32_t>(context, refs[d])[lane];
        found.x[d] = f32_of(bits);
        found.i[d] = static_cast<int32_t>(bits);
    }
    return found;
}

// The texture of a lane's handle, if its memory is still there. Null after a fault.
const Texture* find(Context& context, const Op* op, uint64_t handle, uint32_t lane, bool is_write) {
    const Texture* t = static_cast<const TextureMap*>(context.memory)->texture(handle);
    if (t == nullptr) {
        raise_fault(context, op, FaultKind::illegal_address, AddressSpace::global, lane, handle, 0, is_write);
        return nullptr;
    }
    if (!t->is_memory) return t;
    auto begin = reinterpret_cast<uint64_t>(t->data);
    uint64_t bytes = (t->height - 1) * t->row_pitch + uint64_t{t->width} * t->texel_bytes();
    MemoryRange range = context.memory->lookup(begin);
    if (begin >= range.begin && begin + bytes <= range.end && (range.writable || !is_write)) return t;
    raise_fault(context, op, FaultKind::illegal_address, AddressSpace::global, lane, begin, 0, is_write);
    return nullptr;
}

// Lanes mostly share one handle, which is looked up once.
class Finder {
  public:
    Finder(Context& context, const Op* op, Ref ref, bool is_write)
        : context_(context), op_(op), handles_(row<const uint64_t>(context, ref)), is_write_(is_write) {}
    const Texture* of(uint32_t lane) {
        if (last_ == nullptr || handles_[lane] != handle_) {
            handle_ = handles_[lane];
            last_ = find(context_, op_, handle_, lane, is_write_);
        }
        return last_;
    }

  private:
    Context& context_;
    const Op* op_;
    const uint64_t* handles_;
    bool is_write_;
    uint64_t handle_ = 0;
    const Texture* last_ = nullptr;
};

const Op* run_texture(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* refs = context.aux + op->e / 4;
    Finder finder(context, op, refs[4], false);
    uint32_t dimensions = extent_of(op->aux).dimensions;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        auto lane = static_cast<uint32_t>(__builtin_ctz(left));
        const Texture* t = finder.of(lane);
        if (t == nullptr) return nullptr;
        Coordinates at = coordinates_of(context, op, refs + 5, lane, *t);
        Texel texel =
            (op->aux & kIntegers) != 0 ? fetch(*t, at.i, dimensions, at.layer) : sample(*t, at.x, dimensions, at.layer);
        bool floats = gives_floats(*t);
        for (uint32_t c = 0; c < 4; ++c) {
            if (refs[c] != kNoRef) row<uint32_t>(context, refs[c])[lane] = floats ? bits_of(texel.f[c]) : texel.u[c];
        }
    }
    return op + 1;
}

// One component of the four texels that bilinear filtering would take, counter-clockwise from the lower left.
const Op* run_gather(Context& context, const Op* op, uint32_t mask) {
    static constexpr int kOffsets[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    const uint32_t* refs = context.aux + op->e / 4;
    Finder finder(context, op, refs[4], false);
    uint32_t component = op->aux >> kComponentShift & 3;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        auto lane = static_cast<uint32_t>(__builtin_ctz(left));
        const Texture* t = finder.of(lane);
        if (t == nullptr) return nullptr;
        Coordinates at = coordinates_of(context, op, refs + 5, lane, *t);
        auto x = static_cast<int64_t>(std::floor(scaled(*t, at.x[0], 0) - 0.5));
        auto y = static_cast<int64_t>(std::floor(scaled(*t, at.x[1], 1) - 0.5));
        for (uint32_t k = 0; k < 4; ++k) {
            Texel texel = fetch(*t, {x + kOffsets[k][0], y + kOffsets[k][1], 0}, 2, at.layer);
            uint32_t bits = gives_floats(*t) ? bits_of(texel.f[component]) : texel.u[component];
            if (refs[k] != kNoRef) row<uint32_t>(context, refs[k])[lane] = bits;
        }
    }
    return op + 1;
}

// Where the elements of a surface access lie. Null: outside, with *fault set if that is one.
uint8_t* surface_place(const Texture& t, const Coordinates& at, uint32_t aux, bool* fault) {
    uint32_t bytes = (aux >> kBytesShift & 15) * (aux >> kCountShift & 15);
    auto bounds = static_cast<SurfaceBounds>(aux >> kBoundsShift & 3);
    Extent extent = extent_of(aux);
    int64_t width = int64_t{t.width} * t.texel_bytes();
    int64_t index[3] = {at.i[0], at.i[1], at.i[2]};
    *fault = width < bytes;
    for (uint32_t d = 0; d < extent.dimensions && !*fault; ++d) {
        int64_t last = d == 0 ? width - bytes : size_of(t, d) - 1;
        if (index[d] >= 0 && index[d] <= last) continue;
        if (bounds == SurfaceBounds::zero) return nullptr;
        if (bounds == SurfaceBounds::trap) *fault = true;
        index[d] = std::clamp<int64_t>(index[d], 0, last);
        if (d == 0) index[d] -= index[d] % t.texel_bytes();
    }
    if (*fault) return nullptr;
    if (extent.is_layered) index[2] = at.layer;
    return t.data + static_cast<uint64_t>(index[2]) * t.plane_pitch + static_cast<uint64_t>(index[1]) * t.row_pitch +
           static_cast<uint64_t>(index[0]);
}

template <bool Store>
const Op* run_surface(Context& context, const Op* op, uint32_t mask) {
    const uint32_t* refs = context.aux + op->e / 4;
    uint32_t bytes = op->aux >> kBytesShift & 15, count = op->aux >> kCountShift & 15;
    Finder finder(context, op, refs[count], Store);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        auto lane = static_cast<uint32_t>(__builtin_ctz(left));
        const Texture* t = finder.of(lane);
        if (t == nullptr) return nullptr;
        Coordinates at = coordinates_of(context, op, refs + count + 1, lane, *t);
        bool fault = !t->is_surface;
        uint8_t* place = fault ? nullptr : surface_place(*t, at, op->aux, &fault);
        if (fault)
            return raise_fault(context, op, FaultKind::illegal_address, AddressSpace::global, lane,
                               static_cast<uint64_t>(at.i[0]), bytes * count, Store);
        for (uint32_t k = 0; k < count; ++k) {
            if (refs[k] == kNoRef) continue;
            if constexpr (Store) {
                uint64_t value = bytes == 8 ? row<const uint64_t>(context, refs[k])[lane]
                                            : row<const uint32_t>(context, refs[k])[lane];
                if (place != nullptr) std::memcpy(place + k * bytes, &value, bytes);
            } else {
                uint64_t value = place != nullptr ? load(place + k * bytes, bytes) : 0;
                if (bytes == 8)
                    row<uint64_t>(context, refs[k])[lane] = value;
                else
                    row<uint32_t>(context, refs[k])[lane] = static_cast<uint32_t>(value);
            }
        }
    }
    return op + 1;
}

const Op* run_query(Context& context, const Op* op, uint32_t mask) {
    Finder finder(context, op, op->a, false);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        auto lane = static_cast<uint32_t>(__builtin_ctz(left));
        const Texture* t = finder.of(lane);
        if (t == nullptr) return nullptr;
        uint32_t value = 1;
        switch (static_cast<TextureQuery>(op->imm)) {
            case TextureQuery::width: value = t->width; break;
            case TextureQuery::height: value = t->height; break;
            case TextureQuery::depth: value = t->is_layered ? 1 : t->depth; break;
            case TextureQuery::array_size: value = t->is_layered ? t->depth : 0; break;
            case TextureQuery::mipmap_levels:
            case TextureQuery::samples: break;
        }
        row<uint32_t>(context, op->d)[lane] = value;
    }
    return op + 1;
}

}  // namespace
}  // namespace weft::engine::texture

namespace weft::engine {

Handler texture_handler() { return texture::run_texture; }
Handler gather_handler() { return texture::run_gather; }
Handler surface_load_handler() { return texture::run_surface<false>; }
Handler surface_store_handler() { return texture::run_surface<true>; }
Handler texture_query_handler() { return texture::run_query; }

}  // namespace weft::engine
