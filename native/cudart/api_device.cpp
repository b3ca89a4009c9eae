// Devices: which one a thread works on, and their primary contexts.
#include <algorithm>

#include "cudart/entry.h"
#include "cudart/properties.h"
#include "cudart/state.h"

namespace weft::cudart::api {
namespace {

cudaError_t check_device(int device) {
    WEFT_TRY(enter_driver());
    return device >= 0 && device < device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

// A request field of zero means: any.
int matches(const cudaDeviceProp& wanted, const cudaDeviceProp& found) {
    int score = 0;
    score += wanted.major == 0 || found.major >= wanted.major ? 4 : 0;
    score += wanted.minor == 0 || found.major > wanted.major || found.minor >= wanted.minor ? 2 : 0;
    score += found.totalGlobalMem >= wanted.totalGlobalMem ? 2 : 0;
    score += found.multiProcessorCount >= wanted.multiProcessorCount ? 1 : 0;
    return score;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = 0;
    WEFT_TRY(enter_driver());
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    WEFT_TRY(check_device(device));
    t_state.device = device;
    return use_device(device);
}

cudaError_t cudaGetDevice(int* device) {
    if (device == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter_driver());
    return find_current_device(device);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    constexpr unsigned kFlagsAreValid = 1;
    WEFT_TRY(check_device(device));
    if ((flags & ~kFlagsAreValid) != 0) return cudaErrorInvalidValue;
    if ((flags & kFlagsAreValid) != 0) WEFT_TRY(driver().cuDevicePrimaryCtxSetFlags_v2(device, device_flags));
    CUcontext context;
    return primary_context(device, &context);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    int device;
    WEFT_TRY(cudaGetDevice(&device));
    return to_error(driver().cuDevicePrimaryCtxSetFlags_v2(device, flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    if (flags == nullptr) return cudaErrorInvalidValue;
    int device;
    int active;
    WEFT_TRY(cudaGetDevice(&device));
    WEFT_TRY(driver().cuDevicePrimaryCtxGetState(device, flags, &active));
    *flags |= CU_CTX_MAP_HOST;
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
    if (count < 0 || (count > 0 && devices == nullptr)) return cudaErrorInvalidValue;
    for (int i = 0; i < count; ++i) WEFT_TRY(check_device(devices[i]));
    WEFT_TRY(enter_driver());
    if (count > 0) t_state.device = devices[0];
    return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
    int device;
    WEFT_TRY(cudaGetDevice(&device));
    WEFT_TRY(reset_device(device));
    t_state.last_error = cudaSuccess;  // also one that would have stayed
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    WEFT_TRY(enter());
    WEFT_TRY(check_device(peer));
    CUcontext context;
    WEFT_TRY(primary_context(peer, &context));
    return to_error(driver().cuCtxEnablePeerAccess(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    WEFT_TRY(enter());
    WEFT_TRY(check_device(peer));
    CUcontext context;
    WEFT_TRY(primary_context(peer, &context));
    return to_error(driver().cuCtxDisablePeerAccess(context));
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
    if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter_driver());
    int best = -1;
    for (int i = 0; i < device_count(); ++i) {
        cudaDeviceProp found;
        WEFT_TRY(read_properties(i, &found));
        if (const int score = matches(*wanted, found); score > best) {
            best = score;
            *device = i;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* width, const cudaChannelFormatDesc* format, int device) {
    WEFT_TRY(check_device(device));
    if (width == nullptr || format == nullptr) return cudaErrorInvalidValue;
    const int bytes = (format->x + format->y + format->z + format->w) / 8;
    int elements = 0;
    WEFT_TRY(driver().cuDeviceGetAttribute(&elements, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, device));
    if (bytes <= 0) return cudaErrorInvalidChannelDescriptor;
    *width = static_cast<std::size_t>(elements);
    return cudaSuccess;
}

#if WEFT_CUDART_MAJOR == 12
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int device) {
    WEFT_TRY(check_device(device));
    return properties != nullptr ? read_properties(device, properties) : cudaErrorInvalidValue;
}

// Programs built with CUDA 11 pass the struct as it was then: the front part of today's.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    WEFT_TRY(check_device(device));
    if (properties == nullptr) return cudaErrorInvalidValue;
    cudaDeviceProp whole;
    WEFT_TRY(read_properties(device, &whole));
    std::copy_n(reinterpret_cast<const char*>(&whole), kOldPropertiesBytes, reinterpret_cast<char*>(properties));
    return cudaSuccess;
}

cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
#else
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    WEFT_TRY(check_device(device));
    return properties != nullptr ? read_properties(device, properties) : cudaErrorInvalidValue;
}
#endif

cudaError_t cudaDriverGetVersion(int* version) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = 0;
    if (enter_driver() == cudaErrorInsufficientDriver) return cudaSuccess;  // no driver is version 0
    return to_error(driver().cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = kCudartVersion;
    return cudaSuccess;
}

// NVIDIA's private tables are not offered.
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t*) {
    if (table != nullptr) *table = nullptr;
    return cudaErrorSymbolNotFound;
}

}  // namespace weft::cudart::api
