// Initialisation, versions, entry points and error texts.
#include <dlfcn.h>

#include <cstring>
#include <span>

#include "driver/proc_address.h"
#include "driver/symbols.h"
#include "gen/cuda_names.h"
#include "gen/shim_api.h"
#include "shim/current.h"
#include "shim/driver_log.h"
#include "shim/log.h"
#include "shim/runtime.h"

// Tells loaders of drivers that this library is Weft's own stand-in: it must never serve as an executor's driver.
extern "C" __attribute__((visibility("default"))) int weftIsShim() { return 1; }

extern "C" int weft_unsupported(const char* name) {
    weft::shim::log_once(
        name,
        std::string(name) + " is not supported; it answers CUDA_ERROR_NOT_SUPPORTED (docs/reference/cuda-calls.md)");
    return CUDA_ERROR_NOT_SUPPORTED;
}

namespace weft::shim::api {
namespace {

// The file that called into this library. Our own frames keep frame pointers, so the first one of somebody else is
// found by them.
std::string_view calling_object() {
    Dl_info self{};
    (void)dladdr(reinterpret_cast<void*>(&weftIsShim), &self);
    auto** frame = static_cast<void**>(__builtin_frame_address(0));
    for (int depth = 0; depth < 4; ++depth) {
        Dl_info caller{};
        if (dladdr(frame[1], &caller) == 0 || caller.dli_fname == nullptr) break;
        if (caller.dli_fbase != self.dli_fbase) return caller.dli_fname;
        frame = static_cast<void**>(frame[0]);
    }
    return "the program";
}

}  // namespace

CUresult cuInit(unsigned int flags) { return flags == 0 ? Runtime::initialize() : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int* version) {
    // Works before cuInit: programs choose their code path by it.
    const Runtime* runtime = Runtime::get();
    *version = runtime != nullptr ? const_cast<Runtime*>(runtime)->server().driver_version : CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    // Independent of the server's version: every name is there, and says NOT_SUPPORTED itself if need be.
    return driver::get_proc_address(std::span(driver::kSymbolAddresses, driver::kSymbolCount), CUDA_VERSION, symbol,
                                    function, cuda_version, flags, status);
}

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
    const std::string_view caller = calling_object();
    log_once(caller, std::string(caller) +
                         " carries NVIDIA's CUDA runtime, which asks the driver for private tables; there are "
                         "none, so its calls fail (docs/design/cudart.md)");
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = driver::error_name(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    *text = driver::error_description(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle) {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t number = driver_log().add(callback, data);
    if (number == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(number);
    return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
    return driver_log().remove(reinterpret_cast<std::uintptr_t>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Nothing to start: a profiler of the GPU would be on the other side.
CUresult cuProfilerStart() {
    Context* context;
    return usable_context(&context);
}

CUresult cuProfilerStop() { return cuProfilerStart(); }

}  // namespace weft::shim::api
