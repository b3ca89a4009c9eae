// The driver under test: every function by its exported name, found with dlsym in libcuda.so.1. A function that an
// older driver lacks is null; its tests skip. Nothing here knows which driver it is.
#pragma once

#include "gen/cuda_abi.h"

// clang-format off
#define CONFORMANCE_FUNCTIONS(X) \
    X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuGetProcAddress) X(cuGetProcAddress_v2) \
    X(cuGetExportTable) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetUuid) X(cuDeviceGetUuid_v2) \
    X(cuDeviceGetAttribute) X(cuDeviceComputeCapability) X(cuDeviceTotalMem_v2) X(cuDeviceGetPCIBusId) X(cuDeviceGetByPCIBusId) \
    X(cuDeviceGetProperties) X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) \
    X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxGetState) X(cuDevicePrimaryCtxSetFlags_v2) X(cuCtxCreate_v2) \
    X(cuCtxDestroy_v2) X(cuCtxPushCurrent_v2) X(cuCtxPopCurrent_v2) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxGetDevice) \
    X(cuCtxGetDevice_v2) X(cuCtxGetFlags) X(cuCtxGetId) X(cuCtxGetApiVersion) X(cuCtxSynchronize) X(cuCtxSynchronize_v2) \
    X(cuCtxGetLimit) X(cuCtxSetLimit) X(cuCtxGetCacheConfig) X(cuCtxSetCacheConfig) X(cuCtxGetStreamPriorityRange) \
    X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemAllocPitch_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemAllocFromPoolAsync) X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute) X(cuMemPoolTrimTo) \
    X(cuMemHostAlloc) X(cuMemAllocHost_v2) X(cuMemFreeHost) X(cuMemHostRegister_v2) X(cuMemHostUnregister) \
    X(cuMemHostGetDevicePointer_v2) X(cuMemHostGetFlags) X(cuMemGetAddressRange_v2) X(cuPointerGetAttribute) \
    X(cuPointerGetAttributes) X(cuMemcpyHtoD_v2) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoD_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpy) X(cuMemcpyAsync) X(cuMemcpyPeer) X(cuMemcpy2D_v2) X(cuMemcpy3D_v2) \
    X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuDeviceSetMemPool) X(cuMemPoolGetAccess) X(cuMemPoolSetAccess) \
    X(cuMemGetAccess) X(cuMemGetAllocationPropertiesFromHandle) X(cuArray3DCreate_v2) X(cuArray3DGetDescriptor_v2) X(cuArrayDestroy) X(cuTexObjectCreate) X(cuTexObjectDestroy) \
    X(cuTexObjectGetTextureDesc) X(cuTexObjectGetResourceDesc) X(cuSurfObjectCreate) X(cuSurfObjectDestroy) X(cuMemAllocManaged) X(cuMemPrefetchAsync) X(cuMemAdvise) X(cuStreamAttachMemAsync) X(cuMemcpy2DUnaligned_v2) X(cuMemcpy2DAsync_v2) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DPeer) X(cuMemsetD2D8Async) \
    X(cuMemsetD2D16Async) X(cuMemsetD2D32Async) \
    X(cuMemsetD8_v2) X(cuMemsetD16_v2) X(cuMemsetD32_v2) X(cuMemsetD2D8_v2) X(cuMemsetD2D32_v2) X(cuMemsetD8Async) \
    X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuMemGetAllocationGranularity) X(cuMemAddressReserve) X(cuMemAddressFree) \
    X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemRetainAllocationHandle) \
    X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleUnload) X(cuModuleGetFunction) \
    X(cuModuleGetGlobal_v2) X(cuModuleGetLoadingMode) X(cuModuleGetFunctionCount) X(cuModuleEnumerateFunctions) \
    X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuLibraryGetModule) \
    X(cuLibraryGetGlobal) X(cuLibraryGetKernelCount) X(cuLibraryEnumerateKernels) X(cuKernelGetFunction) X(cuKernelGetAttribute) \
    X(cuKernelSetAttribute) X(cuKernelGetName) X(cuKernelGetParamInfo) X(cuLinkCreate_v2) X(cuLinkAddData_v2) X(cuLinkAddFile_v2) \
    X(cuLinkComplete) X(cuLinkDestroy) X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) X(cuFuncGetName) \
    X(cuFuncGetModule) X(cuFuncGetParamInfo) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) \
    X(cuLaunchHostFunc) X(cuStreamAddCallback) X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) \
    X(cuStreamQuery) X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamGetPriority) X(cuStreamGetFlags) X(cuStreamGetCtx) \
    X(cuStreamGetId) X(cuStreamGetDevice) X(cuStreamIsCapturing) X(cuStreamWriteValue32_v2) X(cuStreamWaitValue32_v2) \
    X(cuEventCreate) X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventRecordWithFlags) X(cuEventQuery) X(cuEventSynchronize) \
    X(cuEventElapsedTime) X(cuEventElapsedTime_v2) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(cuOccupancyMaxPotentialBlockSize) \
    X(cuOccupancyAvailableDynamicSMemPerBlock) X(cuLogsRegisterCallback) X(cuLogsUnregisterCallback) X(cuProfilerStart) \
    X(cuProfilerStop) \
    X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphClone) X(cuGraphNodeFindInClone) X(cuGraphDestroyNode) X(cuGraphGetNodes) \
    X(cuGraphGetRootNodes) X(cuGraphGetEdges) X(cuGraphGetEdges_v2) X(cuGraphNodeGetDependencies) \
    X(cuGraphNodeGetDependencies_v2) X(cuGraphNodeGetDependentNodes) X(cuGraphNodeGetDependentNodes_v2) \
    X(cuGraphAddDependencies) X(cuGraphAddDependencies_v2) X(cuGraphRemoveDependencies) X(cuGraphRemoveDependencies_v2) \
    X(cuGraphNodeGetType) X(cuGraphDebugDotPrint) X(cuGraphAddKernelNode) X(cuGraphAddKernelNode_v2) X(cuGraphAddMemcpyNode) \
    X(cuGraphAddMemsetNode) X(cuGraphAddHostNode) X(cuGraphAddEmptyNode) X(cuGraphAddChildGraphNode) \
    X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode) X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode) \
    X(cuGraphAddNode) X(cuGraphAddNode_v2) X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeGetParams_v2) \
    X(cuGraphKernelNodeSetParams) X(cuGraphKernelNodeSetParams_v2) X(cuGraphKernelNodeCopyAttributes) \
    X(cuGraphKernelNodeGetAttribute) X(cuGraphKernelNodeSetAttribute) X(cuGraphMemcpyNodeGetParams) \
    X(cuGraphMemcpyNodeSetParams) X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) X(cuGraphHostNodeGetParams) \
    X(cuGraphHostNodeSetParams) X(cuGraphChildGraphNodeGetGraph) X(cuGraphEventRecordNodeGetEvent) \
    X(cuGraphEventRecordNodeSetEvent) X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent) \
    X(cuGraphMemAllocNodeGetParams) X(cuGraphMemFreeNodeGetParams) X(cuGraphNodeSetParams) X(cuGraphInstantiate) \
    X(cuGraphInstantiate_v2) X(cuGraphInstantiateWithFlags) X(cuGraphInstantiateWithParams) X(cuGraphExecDestroy) \
    X(cuGraphExecGetFlags) X(cuGraphExecUpdate) X(cuGraphExecUpdate_v2) X(cuGraphExecKernelNodeSetParams) \
    X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecMemcpyNodeSetParams) X(cuGraphExecMemsetNodeSetParams) \
    X(cuGraphExecHostNodeSetParams) X(cuGraphExecChildGraphNodeSetParams) X(cuGraphExecEventRecordNodeSetEvent) \
    X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecNodeSetParams) X(cuGraphNodeSetEnabled) X(cuGraphNodeGetEnabled) \
    X(cuGraphUpload) X(cuGraphLaunch) X(cuUserObjectCreate) X(cuUserObjectRetain) X(cuUserObjectRelease) \
    X(cuGraphRetainUserObject) X(cuGraphReleaseUserObject) X(cuStreamWriteValue64_v2) X(cuStreamWaitValue64_v2) \
    X(cuStreamBatchMemOp_v2) X(cuStreamSetAttribute) X(cuStreamGetAttribute) X(cuStreamCopyAttributes) \
    X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuStreamGetCaptureInfo_v2) X(cuStreamGetCaptureInfo_v3) \
    X(cuThreadExchangeStreamCaptureMode) X(cuStreamUpdateCaptureDependencies) X(cuStreamBeginCaptureToGraph)
// clang-format on

struct Api {
#define X(name) decltype(&::name) name = nullptr;
    CONFORMANCE_FUNCTIONS(X)
#undef X
    void* library = nullptr;
};

// Loaded before main's tests run; see load_api.
extern Api cu;

// False, with a line on stderr, if there is no libcuda.so.1.
bool load_api();
