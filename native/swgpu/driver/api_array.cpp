// CUDA arrays.
#include "swgpu/driver/api.h"
#include "swgpu/driver/array.h"

using namespace weft::swdriver;

namespace weft::swdriver {

std::optional<engine::TexelFormat> texel_format(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8: return engine::TexelFormat::u8;
        case CU_AD_FORMAT_UNSIGNED_INT16: return engine::TexelFormat::u16;
        case CU_AD_FORMAT_UNSIGNED_INT32: return engine::TexelFormat::u32;
        case CU_AD_FORMAT_SIGNED_INT8: return engine::TexelFormat::s8;
        case CU_AD_FORMAT_SIGNED_INT16: return engine::TexelFormat::s16;
        case CU_AD_FORMAT_SIGNED_INT32: return engine::TexelFormat::s32;
        case CU_AD_FORMAT_HALF: return engine::TexelFormat::f16;
        case CU_AD_FORMAT_FLOAT: return engine::TexelFormat::f32;
        default: return std::nullopt;
    }
}

Array::Array(Ref<Context> context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t address)
    : Object(kKind),
      context_(std::move(context)),
      descriptor_(descriptor),
      address_(address),
      row_bytes_(descriptor.Width * descriptor.NumChannels * engine::bytes_of(*texel_format(descriptor.Format))) {}

Array::~Array() { driver().devices[static_cast<std::size_t>(context_->device())]->memory.release(address_); }

}  // namespace weft::swdriver

namespace {

constexpr unsigned kFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER;
constexpr std::uint64_t kMaxWidth = 131072, kMaxHeight = 131072, kMaxDepth = 16384;

CUresult check(const CUDA_ARRAY3D_DESCRIPTOR& d) {
    if (d.Width == 0 || d.Width > kMaxWidth || d.Height > kMaxHeight || d.Depth > kMaxDepth)
        return CUDA_ERROR_INVALID_VALUE;
    if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) return CUDA_ERROR_INVALID_VALUE;
    if (!texel_format(d.Format)) return CUDA_ERROR_INVALID_VALUE;
    if ((d.Flags & ~kFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;  // cube maps, sparse arrays, ...
    const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    if (layered ? d.Depth == 0 : d.Depth != 0 && d.Height == 0) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    WEFT_ENTER(entry);
    WEFT_TRY(check(descriptor));
    const std::uint64_t row =
        descriptor.Width * descriptor.NumChannels * weft::engine::bytes_of(*texel_format(descriptor.Format));
    const std::uint64_t bytes =
        row * (descriptor.Height != 0 ? descriptor.Height : 1) * (descriptor.Depth != 0 ? descriptor.Depth : 1);
    const auto address = entry.device().memory.allocate(bytes);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    const Ref<Array> array(new Array(entry.context, descriptor, *address));
    HandleTable::instance().insert(array.get());
    entry->add_object(*array);
    *out = array->handle_as<CUarray>();
    return CUDA_SUCCESS;
}

}  // namespace

WEFT_API CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    WEFT_TRY(check_ready());
    return out != nullptr && descriptor != nullptr ? create(out, *descriptor) : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
    WEFT_TRY(check_ready());
    if (out == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR whole{};
    whole.Width = descriptor->Width;
    whole.Height = descriptor->Height;
    whole.Format = descriptor->Format;
    whole.NumChannels = descriptor->NumChannels;
    return create(out, whole);
}

WEFT_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
    WEFT_ENTER(entry);
    const Ref<Array> array = find<Array>(handle);
    if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    *descriptor = array->descriptor();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
    WEFT_ENTER(entry);
    const Ref<Array> array = find<Array>(handle);
    if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    const CUDA_ARRAY3D_DESCRIPTOR& whole = array->descriptor();
    *descriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuArrayDestroy(CUarray handle) {
    WEFT_ENTER(entry);
    const Ref<Array> array = find<Array>(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    synchronize(array->context());
    array->context().forget_object(*array);
    return HandleTable::instance().remove<Array>(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
