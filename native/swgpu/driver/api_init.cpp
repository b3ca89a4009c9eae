// Start-up, versions, error names, symbol look-up, logs, profiler control.
#include <cstdio>
#include <cstring>
#include <span>

#include "driver/proc_address.h"
#include "driver/symbols.h"
#include "gen/cuda_names.h"
#include "swgpu/driver/api.h"
#include "swgpu/driver/log.h"

using namespace weft::swdriver;

WEFT_API CUresult cuInit(unsigned int flags) { return initialize(flags); }

WEFT_API CUresult cuDriverGetVersion(int* version) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = kDriverVersion;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuGetErrorName(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = weft::driver::error_name(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuGetErrorString(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = weft::driver::error_description(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status) {
    const std::span<void* const> addresses(weft::driver::kSymbolAddresses, weft::driver::kSymbolCount);
    return weft::driver::get_proc_address(addresses, kDriverVersion, symbol, function, cuda_version, flags, status);
}

WEFT_API CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}

// Private tables are not imitated (see docs/adr).
WEFT_API CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

WEFT_API CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle) {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t number = log_register(reinterpret_cast<LogCallback>(callback), data);
    if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(number);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
    return log_unregister(reinterpret_cast<std::uint64_t>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuLogsCurrent(CUlogIterator* iterator, unsigned int flags) {
    if (iterator == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *iterator = log_end();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
    if (buffer == nullptr || size == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUlogIterator position = iterator != nullptr ? *iterator : 0;
    std::string text = log_read_from(&position);
    if (iterator != nullptr) *iterator = position;
    const size_t room = *size;
    *size = 0;
    if (text.empty()) return CUDA_SUCCESS;
    // The newest messages matter: cut whole lines from the front until the rest fits.
    while (!text.empty() && text.size() + 1 > room) text.erase(0, text.find('\n') + 1);
    if (text.empty()) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    *size = text.size();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* path, unsigned int flags) {
    if (path == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUlogIterator position = iterator != nullptr ? *iterator : 0;
    const std::string text = log_read_from(&position);
    FILE* file = std::fopen(path, "we");
    if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (iterator != nullptr) *iterator = position;
    return (std::fclose(file) == 0) && written ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

WEFT_API CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) { return CUDA_ERROR_NOT_SUPPORTED; }
WEFT_API CUresult cuProfilerStart() {
    WEFT_ENTER(entry);
    return CUDA_SUCCESS;
}
WEFT_API CUresult cuProfilerStop() {
    WEFT_ENTER(entry);
    return CUDA_SUCCESS;
}
