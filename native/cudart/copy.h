// Pieces of copies that calls of several kinds share. All need a current context.
#pragma once

#include "cudart/abi.h"

namespace weft::cudart {

cudaError_t check_kind(cudaMemcpyKind kind);
// Waits as the manual of cudaMemcpy says. stream: null, or CU_STREAM_PER_THREAD.
cudaError_t copy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream stream);
cudaError_t copy_async(void* to, const void* from, std::size_t count, cudaMemcpyKind kind, CUstream stream);

// The device address of [offset, offset + count) of a variable of the program. Starts the runtime.
cudaError_t symbol_range(const void* symbol, std::size_t offset, std::size_t count, CUdeviceptr* address);
cudaError_t check_symbol_kind(cudaMemcpyKind kind, cudaMemcpyKind natural);

// Where the kind says that each side lies.
CUmemorytype source_type(cudaMemcpyKind kind);
CUmemorytype target_type(cudaMemcpyKind kind);
// The driver's form of a copy between arrays and pitched memory.
cudaError_t to_driver_copy(const cudaMemcpy3DParms& copy, CUDA_MEMCPY3D* out);
cudaError_t from_driver_copy(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* out);
// Bytes per element of an array.
cudaError_t element_bytes(CUarray array, std::size_t* bytes);

inline CUarray driver_array(cudaArray_const_t array) {
    return reinterpret_cast<CUarray>(const_cast<struct cudaArray*>(array));
}

}  // namespace weft::cudart
