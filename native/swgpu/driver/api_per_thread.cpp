// The variants for programs compiled with per-thread default streams: stream 0 means the calling thread's own stream.
// Forwarding only.
#include "swgpu/driver/api.h"

namespace {

CUstream own(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

// The copies that wait: queued in the thread's stream, and waited for.
CUresult finish(CUresult submitted) {
    return submitted == CUDA_SUCCESS ? cuStreamSynchronize(CU_STREAM_PER_THREAD) : submitted;
}

}  // namespace

WEFT_API CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return cuEventRecordWithFlags(hEvent, own(hStream), flags);
}
WEFT_API CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) { return cuEventRecord(hEvent, own(hStream)); }
WEFT_API CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                                 unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                                 unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                                 void** kernelParams) {
    return cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                                     own(hStream), kernelParams);
}
WEFT_API CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void* userData) {
    return cuLaunchHostFunc(own(hStream), fn, userData);
}
WEFT_API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                      unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                      unsigned int sharedMemBytes, CUstream hStream, void** kernelParams,
                                      void** extra) {
    return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                          own(hStream), kernelParams, extra);
}
WEFT_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                               CUstream hStream) {
    return cuMemAllocFromPoolAsync(dptr, bytesize, pool, own(hStream));
}
WEFT_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
    return cuMemAllocAsync(dptr, bytesize, own(hStream));
}
WEFT_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) { return cuMemFreeAsync(dptr, own(hStream)); }
WEFT_API CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
    return cuMemcpy2DAsync_v2(pCopy, own(hStream));
}
WEFT_API CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
    return cuMemcpy3DAsync_v2(pCopy, own(hStream));
}
WEFT_API CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return cuMemcpyAsync(dst, src, ByteCount, own(hStream));
}
WEFT_API CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                            CUstream hStream) {
    return cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, own(hStream));
}
WEFT_API CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    return cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, own(hStream));
}
WEFT_API CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                            CUstream hStream) {
    return cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, own(hStream));
}
WEFT_API CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                         CUcontext srcContext, size_t ByteCount, CUstream hStream) {
    return cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext, ByteCount, own(hStream));
}
WEFT_API CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
    return cuMemsetD16Async(dstDevice, us, N, own(hStream));
}
WEFT_API CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                                          size_t Height, CUstream hStream) {
    return cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, own(hStream));
}
WEFT_API CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                          size_t Height, CUstream hStream) {
    return cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, own(hStream));
}
WEFT_API CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                         size_t Height, CUstream hStream) {
    return cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, own(hStream));
}
WEFT_API CUresult cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    return cuMemsetD32Async(dstDevice, ui, N, own(hStream));
}
WEFT_API CUresult cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    return cuMemsetD8Async(dstDevice, uc, N, own(hStream));
}
WEFT_API CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData,
                                           unsigned int flags) {
    return cuStreamAddCallback(own(hStream), callback, userData, flags);
}
WEFT_API CUresult cuStreamGetCaptureInfo_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                              cuuint64_t* id_out) {
    return cuStreamGetCaptureInfo(own(hStream), captureStatus_out, id_out);
}
WEFT_API CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                                 cuuint64_t* id_out, CUgraph* graph_out,
                                                 const CUgraphNode** dependencies_out, size_t* numDependencies_out) {
    return cuStreamGetCaptureInfo_v2(own(hStream), captureStatus_out, id_out, graph_out, dependencies_out,
                                     numDependencies_out);
}
WEFT_API CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                                 cuuint64_t* id_out, CUgraph* graph_out,
                                                 const CUgraphNode** dependencies_out,
                                                 const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {
    return cuStreamGetCaptureInfo_v3(own(hStream), captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                                     numDependencies_out);
}
WEFT_API CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext* pctx) { return cuStreamGetCtx(own(hStream), pctx); }
WEFT_API CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
    return cuStreamGetCtx_v2(own(hStream), pCtx, pGreenCtx);
}
WEFT_API CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice* device) {
    return cuStreamGetDevice(own(hStream), device);
}
WEFT_API CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int* flags) {
    return cuStreamGetFlags(own(hStream), flags);
}
WEFT_API CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long* streamId) {
    return cuStreamGetId(own(hStream), streamId);
}
WEFT_API CUresult cuStreamGetPriority_ptsz(CUstream hStream, int* priority) {
    return cuStreamGetPriority(own(hStream), priority);
}
WEFT_API CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
    return cuStreamIsCapturing(own(hStream), captureStatus);
}
WEFT_API CUresult cuStreamQuery_ptsz(CUstream hStream) { return cuStreamQuery(own(hStream)); }
WEFT_API CUresult cuStreamSynchronize_ptsz(CUstream hStream) { return cuStreamSynchronize(own(hStream)); }
WEFT_API CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    return cuStreamWaitEvent(own(hStream), hEvent, Flags);
}
WEFT_API CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    return cuStreamWaitValue32(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    return cuStreamWaitValue32_v2(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    return cuStreamWaitValue64(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    return cuStreamWaitValue64_v2(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
    return cuStreamWriteValue32(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                               unsigned int flags) {
    return cuStreamWriteValue32_v2(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
    return cuStreamWriteValue64(own(stream), addr, value, flags);
}
WEFT_API CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                               unsigned int flags) {
    return cuStreamWriteValue64_v2(own(stream), addr, value, flags);
}
WEFT_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig changed = *config;
    changed.hStream = own(changed.hStream);
    return cuLaunchKernelEx(&changed, f, kernelParams, extra);
}

WEFT_API CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
    return finish(cuMemcpy2DAsync_v2(pCopy, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
    return finish(cuMemcpy2DAsync_v2(pCopy, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* pCopy) {
    return finish(cuMemcpy3DAsync_v2(pCopy, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return finish(cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpyDtoH_v2_ptds(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return finish(cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
    return finish(cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                    CUcontext srcContext, size_t ByteCount) {
    return finish(cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return finish(cuMemcpyAsync(dst, src, ByteCount, CU_STREAM_PER_THREAD));
}
WEFT_API CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N) {
    return cuMemsetD16Async(dstDevice, us, N, CU_STREAM_PER_THREAD);
}
WEFT_API CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                                        size_t Height) {
    return cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, CU_STREAM_PER_THREAD);
}
WEFT_API CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                        size_t Height) {
    return cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, CU_STREAM_PER_THREAD);
}
WEFT_API CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                       size_t Height) {
    return cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, CU_STREAM_PER_THREAD);
}
WEFT_API CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
    return cuMemsetD32Async(dstDevice, ui, N, CU_STREAM_PER_THREAD);
}
WEFT_API CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    return cuMemsetD8Async(dstDevice, uc, N, CU_STREAM_PER_THREAD);
}
