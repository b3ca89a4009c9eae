#include "cudart/channel.h"

#include "cudart/entry.h"

namespace weft::cudart {
namespace {

struct PlainFormat {
    cudaChannelFormatKind kind;
    int bits;
    CUarray_format format;
};

constexpr PlainFormat kPlain[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

// Normalised formats have a kind for each number of channels.
struct NormalisedFormat {
    cudaChannelFormatKind kind;
    CUarray_format format;
    int bits;
    unsigned channels;
};

constexpr NormalisedFormat kNormalised[] = {
    {cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 8, 1},
    {cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 8, 2},
    {cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 8, 4},
    {cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 16, 1},
    {cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 16, 2},
    {cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 16, 4},
    {cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 8, 1},
    {cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 8, 2},
    {cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 8, 4},
    {cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 16, 1},
    {cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 16, 2},
    {cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 16, 4},
};

// Channels are filled from the front, all with the same bits. 0: not so.
unsigned count_channels(const cudaChannelFormatDesc& desc) {
    const int bits[] = {desc.x, desc.y, desc.z, desc.w};
    unsigned count = 0;
    while (count < 4 && bits[count] != 0) ++count;
    for (unsigned i = 0; i < 4; ++i)
        if (bits[i] != (i < count ? desc.x : 0)) return 0;
    return count == 3 ? 0 : count;
}

cudaChannelFormatDesc make_desc(cudaChannelFormatKind kind, int bits, unsigned channels) {
    return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

}  // namespace

cudaError_t to_driver_format(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels) {
    for (const NormalisedFormat& entry : kNormalised)
        if (entry.kind == desc.f) return *format = entry.format, *channels = entry.channels, cudaSuccess;
    *channels = count_channels(desc);
    if (*channels == 0) return cudaErrorInvalidChannelDescriptor;
    for (const PlainFormat& entry : kPlain)
        if (entry.kind == desc.f && entry.bits == desc.x) return *format = entry.format, cudaSuccess;
    return cudaErrorInvalidChannelDescriptor;
}

cudaError_t to_channel_desc(CUarray_format format, unsigned channels, cudaChannelFormatDesc* desc) {
    for (const PlainFormat& entry : kPlain)
        if (entry.format == format) return *desc = make_desc(entry.kind, entry.bits, channels), cudaSuccess;
    for (const NormalisedFormat& entry : kNormalised)
        if (entry.format == format) return *desc = make_desc(entry.kind, entry.bits, entry.channels), cudaSuccess;
    return cudaErrorInvalidChannelDescriptor;
}

std::size_t format_bytes(CUarray_format format, unsigned channels) {
    cudaChannelFormatDesc desc;
    if (to_channel_desc(format, channels, &desc) != cudaSuccess) return 0;
    return static_cast<std::size_t>(desc.x + desc.y + desc.z + desc.w) / 8;
}

namespace api {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

}  // namespace api
}  // namespace weft::cudart
