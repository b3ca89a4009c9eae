// Memory: what the runtime allows beyond the driver (no bytes, null pointers), pitched memory, what a pointer is.
#include "cudart/entry.h"
#include "cudart/state.h"

namespace weft::cudart::api {
namespace {

constexpr int kNoDevice = -2;  // cudaInvalidDeviceId

cudaError_t allocate_pitched(void** pointer, std::size_t* pitch, std::size_t width, std::size_t rows) {
    if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    CUdeviceptr address = 0;
    *pitch = 0;
    if (width != 0 && rows != 0) WEFT_TRY(driver().cuMemAllocPitch_v2(&address, pitch, width, rows, 4));
    *pointer = to_pointer(address);
    return cudaSuccess;
}

cudaMemoryType memory_type(unsigned type, bool managed) {
    if (managed) return cudaMemoryTypeManaged;
    return type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t size) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    if (size == 0) return *pointer = nullptr, cudaSuccess;
    CUdeviceptr address = 0;
    WEFT_TRY(driver().cuMemAlloc_v2(&address, size));
    *pointer = to_pointer(address);
    return cudaSuccess;
}

// Also the customary way to start the runtime: cudaFree(0).
cudaError_t cudaFree(void* pointer) {
    WEFT_TRY(enter());
    return pointer == nullptr ? cudaSuccess : to_error(driver().cuMemFree_v2(device_address(pointer)));
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t size, cudaStream_t stream) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    if (size == 0) return *pointer = nullptr, cudaSuccess;
    CUdeviceptr address = 0;
    WEFT_TRY(driver().cuMemAllocAsync(&address, size, stream));
    *pointer = to_pointer(address);
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    WEFT_TRY(enter());
    return pointer == nullptr ? cudaSuccess : to_error(driver().cuMemFreeAsync(device_address(pointer), stream));
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t size, unsigned int flags) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    if (size == 0) return *pointer = nullptr, cudaSuccess;
    return to_error(driver().cuMemHostAlloc(pointer, size, flags));
}

cudaError_t cudaMallocHost(void** pointer, std::size_t size) { return cudaHostAlloc(pointer, size, 0); }

cudaError_t cudaFreeHost(void* pointer) {
    WEFT_TRY(enter());
    return pointer == nullptr ? cudaSuccess : to_error(driver().cuMemFreeHost(pointer));
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    return allocate_pitched(pointer, pitch, width, height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    if (pitched == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(allocate_pitched(&pitched->ptr, &pitched->pitch, extent.width, extent.height * extent.depth));
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    WEFT_TRY(enter());
    unsigned type = 0;
    unsigned managed = 0;
    int device = kNoDevice;
    CUdeviceptr device_pointer = 0;
    void* host_pointer = nullptr;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
    *attributes = {};
    WEFT_TRY(driver().cuPointerGetAttributes(5, wanted, values, device_address(pointer)));
    if (type == 0) {  // memory that CUDA knows nothing of
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = kNoDevice;
        attributes->hostPointer = const_cast<void*>(pointer);
        return cudaSuccess;
    }
    attributes->type = memory_type(type, managed != 0);
    attributes->device = device;
    attributes->devicePointer = to_pointer(device_pointer);
    attributes->hostPointer = host_pointer;
    return cudaSuccess;
}

#if WEFT_CUDART_MAJOR == 12
namespace {

CUmemLocation location_of(int device) {
    CUmemLocation location{};
    location.type = device == -1 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;  // -1: cudaCpuDeviceId
    location.id = device == -1 ? 0 : device;
    return location;
}

}  // namespace

cudaError_t cudaMemAdvise(const void* pointer, std::size_t count, cudaMemoryAdvise advice, int device) {
    WEFT_TRY(enter());
    return to_error(driver().cuMemAdvise_v2(device_address(pointer), count, static_cast<CUmem_advise>(advice),
                                            location_of(device)));
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t count, int device, cudaStream_t stream) {
    WEFT_TRY(enter());
    return to_error(driver().cuMemPrefetchAsync_v2(device_address(pointer), count, location_of(device), 0, stream));
}
#endif

}  // namespace weft::cudart::api
