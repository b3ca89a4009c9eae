// The thread's last error, and names and texts of errors.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "cudart/entry.h"
#include "cudart/state.h"
#include "gen/cuda_names.h"

namespace weft::cudart {
namespace {

const ErrorEntry* find_error(int value) {
    for (std::size_t i = 0; i < kErrorCount; ++i)
        if (kErrors[i].value == value) return &kErrors[i];
    return nullptr;
}

constexpr std::size_t kMaxNoted = 64;

// Whether a name is new; names are literals, so their addresses tell them apart.
bool note_first(const char* name) {
    static std::atomic<const char*> noted[kMaxNoted];
    for (auto& slot : noted) {
        const char* seen = slot.load();
        if (seen == nullptr && slot.compare_exchange_strong(seen, name)) return true;
        if (seen == name) return false;
    }
    return false;
}

}  // namespace

cudaError_t remember(cudaError_t error) {
    t_state.last_error = error;
    return error;
}

void log_failure(const char* what, const char* why) {
    char line[640];
    const int length =
        std::snprintf(line, sizeof line, "weft: %s: %.*s\n", what, static_cast<int>(std::strcspn(why, "\n")), why);
    if (length > 0)
        (void)!write(STDERR_FILENO, line, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof line - 1));
}

cudaError_t unsupported(const char* name) {
    if (note_first(name)) {
        char line[160];
        const int length =
            std::snprintf(line, sizeof line,
                          "weft: the CUDA runtime's %s is not supported; it answers cudaErrorNotSupported\n", name);
        if (length > 0)
            (void)!write(STDERR_FILENO, line, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof line - 1));
    }
    return cudaErrorNotSupported;
}

namespace api {

const char* cudaGetErrorName(cudaError_t error) {
    const ErrorEntry* entry = find_error(error);
    return entry != nullptr ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const ErrorEntry* entry = find_error(error);
    if (entry == nullptr) return "unrecognized error code";
    if (entry->text != nullptr) return entry->text;
    const char* text = driver::error_description(static_cast<CUresult>(error));
    return text != nullptr ? text : entry->name;
}

cudaError_t cudaPeekAtLastError() { return t_state.last_error; }

// A context that is lost stays lost: its error is not cleared until the device is reset.
cudaError_t cudaGetLastError() {
    const cudaError_t error = t_state.last_error;
    if (error == cudaSuccess || !driver::is_sticky(static_cast<CUresult>(error))) t_state.last_error = cudaSuccess;
    return error;
}

}  // namespace api
}  // namespace weft::cudart
