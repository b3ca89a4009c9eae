// Texture and surface objects.
#include "swgpu/driver/api.h"
#include "swgpu/driver/array.h"

using namespace weft::swdriver;
using weft::engine::Texture;
using weft::engine::TextureAddress;

namespace weft::swdriver {

// Objects are destroyed when no work runs that could use them (below), so the pointer stays good.
const engine::Texture* AddressSpace::texture(std::uint64_t handle) const {
    const Ref<TextureObject> object = swdriver::find<TextureObject>(reinterpret_cast<void*>(handle));
    return object ? &object->texture : nullptr;
}

}  // namespace weft::swdriver

namespace {

constexpr std::uint64_t kMaxLinearTexels = 1u << 27;
constexpr std::uint64_t kPitchAlignment = 32;

CUresult set_array(TextureObject& object, CUarray handle) {
    object.array = find<Array>(handle);
    if (!object.array) return CUDA_ERROR_INVALID_HANDLE;
    const Array& array = *object.array;
    Texture& t = object.texture;
    t.data = reinterpret_cast<std::uint8_t*>(array.address());
    t.width = static_cast<std::uint32_t>(array.descriptor().Width);
    t.height = static_cast<std::uint32_t>(array.rows());
    t.depth = static_cast<std::uint32_t>(array.planes());
    t.row_pitch = array.row_bytes();
    t.plane_pitch = array.row_bytes() * array.rows();
    t.format = *texel_format(array.descriptor().Format);
    t.channels = array.descriptor().NumChannels;
    t.is_layered = (array.descriptor().Flags & CUDA_ARRAY3D_LAYERED) != 0;
    return CUDA_SUCCESS;
}

CUresult set_memory(Texture& t, CUdeviceptr address, CUarray_format format, unsigned channels) {
    if (!texel_format(format) || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
    t.format = *texel_format(format);
    t.channels = channels;
    t.data = reinterpret_cast<std::uint8_t*>(address);
    t.is_memory = true;
    return CUDA_SUCCESS;
}

CUresult set_linear(Texture& t, const CUDA_RESOURCE_DESC& resource) {
    const auto& linear = resource.res.linear;
    WEFT_TRY(set_memory(t, linear.devPtr, linear.format, linear.numChannels));
    const std::uint64_t texels = linear.sizeInBytes / t.texel_bytes();
    if (texels == 0 || texels > kMaxLinearTexels) return CUDA_ERROR_INVALID_VALUE;
    if (!driver().space.accessible(linear.devPtr, linear.sizeInBytes, false)) return CUDA_ERROR_INVALID_VALUE;
    t.is_buffer = true;
    t.width = static_cast<std::uint32_t>(texels);
    t.row_pitch = t.plane_pitch = linear.sizeInBytes;
    return CUDA_SUCCESS;
}

CUresult set_pitched(Texture& t, const CUDA_RESOURCE_DESC& resource) {
    const auto& plane = resource.res.pitch2D;
    WEFT_TRY(set_memory(t, plane.devPtr, plane.format, plane.numChannels));
    if (plane.width == 0 || plane.height == 0 || plane.width > kMaxLinearTexels || plane.height > kMaxLinearTexels)
        return CUDA_ERROR_INVALID_VALUE;
    if (plane.pitchInBytes < plane.width * t.texel_bytes() || plane.pitchInBytes % kPitchAlignment != 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(plane.pitchInBytes, plane.height - 1, &bytes) ||
        !driver().space.accessible(plane.devPtr, bytes + plane.width * t.texel_bytes(), false))
        return CUDA_ERROR_INVALID_VALUE;
    t.width = static_cast<std::uint32_t>(plane.width);
    t.height = static_cast<std::uint32_t>(plane.height);
    t.row_pitch = plane.pitchInBytes;
    t.plane_pitch = plane.pitchInBytes * plane.height;
    return CUDA_SUCCESS;
}

CUresult set_resource(TextureObject& object, const CUDA_RESOURCE_DESC& resource) {
    object.resource = resource;
    if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY: return set_array(object, resource.res.array.hArray);
        case CU_RESOURCE_TYPE_LINEAR: return set_linear(object.texture, resource);
        case CU_RESOURCE_TYPE_PITCH2D: return set_pitched(object.texture, resource);
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_description(TextureObject& object, const CUDA_TEXTURE_DESC& description) {
    object.description = description;
    Texture& t = object.texture;
    for (std::size_t d = 0; d < 3; ++d) {
        if (description.addressMode[d] < CU_TR_ADDRESS_MODE_WRAP ||
            description.addressMode[d] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        t.address[d] = static_cast<TextureAddress>(description.addressMode[d]);
    }
    if (description.filterMode != CU_TR_FILTER_MODE_POINT && description.filterMode != CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    if ((description.flags & CU_TRSF_SRGB) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    t.filters = description.filterMode == CU_TR_FILTER_MODE_LINEAR;
    t.is_normalized = (description.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    t.reads_floats = (description.flags & CU_TRSF_READ_AS_INTEGER) == 0;
    for (std::size_t c = 0; c < 4; ++c) t.border[c] = description.borderColor[c];
    return CUDA_SUCCESS;
}

CUresult publish(const Entry& entry, const Ref<TextureObject>& object, CUtexObject* out) {
    *out = HandleTable::instance().insert(object.get());
    entry->add_object(*object);
    return CUDA_SUCCESS;
}

CUresult destroy(CUtexObject handle, bool is_surface) {
    WEFT_ENTER(entry);
    const Ref<TextureObject> object = find<TextureObject>(reinterpret_cast<void*>(handle));
    if (!object || object->texture.is_surface != is_surface) return CUDA_ERROR_INVALID_VALUE;
    synchronize(object->context());
    object->context().forget_object(*object);
    HandleTable::instance().remove<TextureObject>(reinterpret_cast<void*>(handle));
    return CUDA_SUCCESS;
}

CUresult find_object(CUtexObject handle, bool is_surface, const void* out, Ref<TextureObject>* object) {
    WEFT_TRY(check_ready());
    *object = find<TextureObject>(reinterpret_cast<void*>(handle));
    const bool found = *object && (*object)->texture.is_surface == is_surface && out != nullptr;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

WEFT_API CUresult cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                                    const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view) {
    WEFT_ENTER(entry);
    if (out == nullptr || resource == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (view != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Ref<TextureObject> object(new TextureObject(entry.context));
    WEFT_TRY(set_resource(*object, *resource));
    WEFT_TRY(set_description(*object, *description));
    return publish(entry, object, out);
}

WEFT_API CUresult cuTexObjectDestroy(CUtexObject handle) { return destroy(handle, false); }

WEFT_API CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject handle) {
    Ref<TextureObject> object;
    WEFT_TRY(find_object(handle, false, out, &object));
    *out = object->resource;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject handle) {
    Ref<TextureObject> object;
    WEFT_TRY(find_object(handle, false, out, &object));
    *out = object->description;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
    WEFT_ENTER(entry);
    if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    const Ref<TextureObject> object(new TextureObject(entry.context));
    WEFT_TRY(set_resource(*object, *resource));
    if ((object->array->descriptor().Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
    object->texture.is_surface = true;
    return publish(entry, object, out);
}

WEFT_API CUresult cuSurfObjectDestroy(CUsurfObject handle) { return destroy(handle, true); }

WEFT_API CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject handle) {
    Ref<TextureObject> object;
    WEFT_TRY(find_object(handle, true, out, &object));
    *out = object->resource;
    return CUDA_SUCCESS;
}
