// Texture and surface objects: the runtime's descriptions in the driver's words and back.
#include <cstring>

#include "cudart/channel.h"
#include "cudart/copy.h"
#include "cudart/entry.h"

namespace weft::cudart::api {
namespace {

cudaError_t to_driver(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to) {
    *to = {};
    to->resType = static_cast<CUresourcetype>(from.resType);
    switch (from.resType) {
        case cudaResourceTypeArray: to->res.array.hArray = driver_array(from.res.array.array); return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            to->res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(from.res.mipmap.mipmap);
            return cudaSuccess;
        case cudaResourceTypeLinear:
            to->res.linear.devPtr = device_address(from.res.linear.devPtr);
            to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
            return to_driver_format(from.res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
        case cudaResourceTypePitch2D:
            to->res.pitch2D.devPtr = device_address(from.res.pitch2D.devPtr);
            to->res.pitch2D.width = from.res.pitch2D.width;
            to->res.pitch2D.height = from.res.pitch2D.height;
            to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
            return to_driver_format(from.res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
        default: return cudaErrorInvalidValue;
    }
}

cudaError_t from_driver(const CUDA_RESOURCE_DESC& from, cudaResourceDesc* to) {
    std::memset(to, 0, sizeof *to);
    to->resType = static_cast<cudaResourceType>(from.resType);
    switch (from.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            to->res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
            return cudaSuccess;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            to->res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
            return cudaSuccess;
        case CU_RESOURCE_TYPE_LINEAR:
            to->res.linear.devPtr = to_pointer(from.res.linear.devPtr);
            to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
            return to_channel_desc(from.res.linear.format, from.res.linear.numChannels, &to->res.linear.desc);
        case CU_RESOURCE_TYPE_PITCH2D:
            to->res.pitch2D.devPtr = to_pointer(from.res.pitch2D.devPtr);
            to->res.pitch2D.width = from.res.pitch2D.width;
            to->res.pitch2D.height = from.res.pitch2D.height;
            to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
            return to_channel_desc(from.res.pitch2D.format, from.res.pitch2D.numChannels, &to->res.pitch2D.desc);
        default: return cudaErrorInvalidValue;
    }
}

CUDA_TEXTURE_DESC to_driver(const cudaTextureDesc& from) {
    CUDA_TEXTURE_DESC to{};
    for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
    to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
    if (from.readMode == cudaReadModeElementType) to.flags |= CU_TRSF_READ_AS_INTEGER;
    if (from.normalizedCoords != 0) to.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (from.sRGB != 0) to.flags |= CU_TRSF_SRGB;
    if (from.disableTrilinearOptimization != 0) to.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (from.seamlessCubemap != 0) to.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    to.maxAnisotropy = from.maxAnisotropy;
    to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
    to.mipmapLevelBias = from.mipmapLevelBias;
    to.minMipmapLevelClamp = from.minMipmapLevelClamp;
    to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
    std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
    return to;
}

cudaTextureDesc from_driver(const CUDA_TEXTURE_DESC& from) {
    cudaTextureDesc to{};
    for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
    to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
    to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    to.sRGB = (from.flags & CU_TRSF_SRGB) != 0;
    to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    to.maxAnisotropy = from.maxAnisotropy;
    to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
    to.mipmapLevelBias = from.mipmapLevelBias;
    to.minMipmapLevelClamp = from.minMipmapLevelClamp;
    to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
    std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
    return to;
}

}  // namespace

// The driver's view has room behind what CUDA 12's runtime describes.
static_assert(sizeof(cudaResourceViewDesc) <= sizeof(CUDA_RESOURCE_VIEW_DESC));

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_RESOURCE_DESC resource_desc;
    WEFT_TRY(to_driver(*resource, &resource_desc));
    const CUDA_TEXTURE_DESC texture_desc = to_driver(*texture);
    CUDA_RESOURCE_VIEW_DESC view_desc{};
    if (view != nullptr) std::memcpy(&view_desc, view, sizeof *view);
    return to_error(
        driver().cuTexObjectCreate(object, &resource_desc, &texture_desc, view != nullptr ? &view_desc : nullptr));
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
    if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
    if (resource->resType != cudaResourceTypeArray) return cudaErrorInvalidChannelDescriptor;
    WEFT_TRY(enter());
    CUDA_RESOURCE_DESC desc;
    WEFT_TRY(to_driver(*resource, &desc));
    return to_error(driver().cuSurfObjectCreate(object, &desc));
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
    if (resource == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_RESOURCE_DESC desc;
    WEFT_TRY(driver().cuTexObjectGetResourceDesc(&desc, object));
    return from_driver(desc, resource);
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
    if (texture == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_TEXTURE_DESC desc;
    WEFT_TRY(driver().cuTexObjectGetTextureDesc(&desc, object));
    *texture = from_driver(desc);
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view, cudaTextureObject_t object) {
    if (view == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_RESOURCE_VIEW_DESC desc{};
    WEFT_TRY(driver().cuTexObjectGetResourceViewDesc(&desc, object));
    std::memcpy(view, &desc, sizeof *view);
    return cudaSuccess;
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
    if (resource == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_RESOURCE_DESC desc;
    WEFT_TRY(driver().cuSurfObjectGetResourceDesc(&desc, object));
    return from_driver(desc, resource);
}

}  // namespace weft::cudart::api
