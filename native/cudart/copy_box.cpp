// Copies between arrays and pitched memory in the driver's words. An array counts elements, other memory bytes.
#include <algorithm>

#include "cudart/copy.h"
#include "cudart/entry.h"

namespace weft::cudart {

CUmemorytype source_type(cudaMemcpyKind kind) {
    if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype target_type(cudaMemcpyKind kind) {
    if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

namespace {

bool is_host(CUmemorytype type) { return type == CU_MEMORYTYPE_HOST; }

// Of whichever side is an array; 1 if none is.
cudaError_t bytes_per_unit(const cudaMemcpy3DParms& copy, std::size_t* bytes) {
    *bytes = 1;
    if (copy.srcArray != nullptr) WEFT_TRY(element_bytes(driver_array(copy.srcArray), bytes));
    if (copy.dstArray == nullptr) return cudaSuccess;
    const std::size_t source = *bytes;
    WEFT_TRY(element_bytes(driver_array(copy.dstArray), bytes));
    return copy.srcArray == nullptr || source == *bytes ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t to_driver_copy(const cudaMemcpy3DParms& copy, CUDA_MEMCPY3D* out) {
    WEFT_TRY(check_kind(copy.kind));
    if ((copy.srcArray == nullptr) == (copy.srcPtr.ptr == nullptr)) return cudaErrorInvalidValue;
    if ((copy.dstArray == nullptr) == (copy.dstPtr.ptr == nullptr)) return cudaErrorInvalidValue;
    std::size_t unit;
    WEFT_TRY(bytes_per_unit(copy, &unit));
    *out = {};
    out->srcXInBytes = copy.srcPos.x * (copy.srcArray != nullptr ? unit : 1);
    out->srcY = copy.srcPos.y;
    out->srcZ = copy.srcPos.z;
    out->srcMemoryType = copy.srcArray != nullptr ? CU_MEMORYTYPE_ARRAY : source_type(copy.kind);
    out->srcArray = driver_array(copy.srcArray);
    out->srcHost = copy.srcPtr.ptr;
    out->srcDevice = device_address(copy.srcPtr.ptr);
    out->srcPitch = copy.srcPtr.pitch;
    out->srcHeight = copy.srcPtr.ysize;
    out->dstXInBytes = copy.dstPos.x * (copy.dstArray != nullptr ? unit : 1);
    out->dstY = copy.dstPos.y;
    out->dstZ = copy.dstPos.z;
    out->dstMemoryType = copy.dstArray != nullptr ? CU_MEMORYTYPE_ARRAY : target_type(copy.kind);
    out->dstArray = driver_array(copy.dstArray);
    out->dstHost = copy.dstPtr.ptr;
    out->dstDevice = device_address(copy.dstPtr.ptr);
    out->dstPitch = copy.dstPtr.pitch;
    out->dstHeight = copy.dstPtr.ysize;
    out->WidthInBytes = copy.extent.width * unit;
    out->Height = copy.extent.height;
    out->Depth = copy.extent.depth;
    return cudaSuccess;
}

cudaError_t from_driver_copy(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* out) {
    *out = {};
    std::size_t unit = 1;
    const bool from_array = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY;
    const bool to_array = copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
    if (from_array || to_array) WEFT_TRY(element_bytes(from_array ? copy.srcArray : copy.dstArray, &unit));
    out->srcPos = {copy.srcXInBytes / (from_array ? unit : 1), copy.srcY, copy.srcZ};
    out->dstPos = {copy.dstXInBytes / (to_array ? unit : 1), copy.dstY, copy.dstZ};
    if (from_array)
        out->srcArray = reinterpret_cast<cudaArray_t>(copy.srcArray);
    else
        out->srcPtr = {is_host(copy.srcMemoryType) ? const_cast<void*>(copy.srcHost) : to_pointer(copy.srcDevice),
                       copy.srcPitch, copy.WidthInBytes, copy.srcHeight};
    if (to_array)
        out->dstArray = reinterpret_cast<cudaArray_t>(copy.dstArray);
    else
        out->dstPtr = {is_host(copy.dstMemoryType) ? copy.dstHost : to_pointer(copy.dstDevice), copy.dstPitch,
                       copy.WidthInBytes, copy.dstHeight};
    out->extent = {copy.WidthInBytes / unit, copy.Height, copy.Depth};
    const bool unified = copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
    const bool host_source = is_host(copy.srcMemoryType);
    const bool host_target = is_host(copy.dstMemoryType);
    out->kind = unified       ? cudaMemcpyDefault
                : host_source ? (host_target ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                              : (host_target ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
    return cudaSuccess;
}

}  // namespace weft::cudart
