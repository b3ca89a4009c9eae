// Arrays and mipmapped arrays: made from a channel description, and described again.
#include "cudart/channel.h"
#include "cudart/copy.h"
#include "cudart/entry.h"

namespace weft::cudart {

cudaError_t element_bytes(CUarray array, std::size_t* bytes) {
    CUDA_ARRAY3D_DESCRIPTOR about;
    WEFT_TRY(driver().cuArray3DGetDescriptor_v2(&about, array));
    *bytes = format_bytes(about.Format, about.NumChannels);
    return *bytes != 0 ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

namespace api {
namespace {

cudaError_t describe(const cudaChannelFormatDesc* desc, const cudaExtent& extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR* out) {
    if (desc == nullptr) return cudaErrorInvalidValue;
    *out = {extent.width, extent.height, extent.depth, CU_AD_FORMAT_FLOAT, 0, flags};
    return to_driver_format(*desc, &out->Format, &out->NumChannels);
}

}  // namespace

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                              unsigned int flags) {
    if (array == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    WEFT_TRY(describe(desc, extent, flags, &wanted));
    return to_error(driver().cuArray3DCreate_v2(reinterpret_cast<CUarray*>(array), &wanted));
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, std::size_t width,
                            std::size_t height, unsigned int flags) {
    return cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                                     unsigned int levels, unsigned int flags) {
    if (array == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    WEFT_TRY(describe(desc, extent, flags, &wanted));
    return to_error(driver().cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &wanted, levels));
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    WEFT_TRY(enter());
    return array == nullptr ? cudaSuccess : to_error(driver().cuArrayDestroy(driver_array(array)));
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags, cudaArray_t array) {
    WEFT_TRY(enter());
    if (array == nullptr) return cudaErrorInvalidResourceHandle;
    CUDA_ARRAY3D_DESCRIPTOR about;
    WEFT_TRY(driver().cuArray3DGetDescriptor_v2(&about, driver_array(array)));
    if (desc != nullptr) WEFT_TRY(to_channel_desc(about.Format, about.NumChannels, desc));
    if (extent != nullptr) *extent = {about.Width, about.Height, about.Depth};
    if (flags != nullptr) *flags = about.Flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
    if (desc == nullptr) return cudaErrorInvalidValue;
    return cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

}  // namespace api
}  // namespace weft::cudart
