// What every exported call does around its work: start the runtime, make a context current, remember the error.
#pragma once

#include <bit>
#include <type_traits>

#include "cudart/abi.h"
#include "cudart/driver.h"

namespace weft::cudart {

struct ErrorEntry {
    int value;
    const char* name;
    const char* text;
};
extern const ErrorEntry kErrors[];
extern const std::size_t kErrorCount;

// The driver is loaded and initialised.
cudaError_t enter_driver();
// And the calling thread has a current context: the program's own if it made one, else the primary one of its device.
cudaError_t enter();

// Makes it the thread's last error.
cudaError_t remember(cudaError_t error);
inline cudaError_t finish(cudaError_t error) {
    return __builtin_expect(error == cudaSuccess, 1) ? cudaSuccess : remember(error);
}
// The codes of the driver have the same numbers in the runtime.
inline cudaError_t to_error(CUresult result) { return static_cast<cudaError_t>(result); }
inline cudaError_t finish(CUresult result) { return finish(to_error(result)); }
// One line on stderr, up to the end of `why`'s first.
void log_failure(const char* what, const char* why);
// One line the first time per name.
cudaError_t unsupported(const char* name);

inline CUstream thread_stream(CUstream stream) { return stream != nullptr ? stream : CU_STREAM_PER_THREAD; }

template <typename T>
inline constexpr bool is_struct_pointer = std::is_pointer_v<T> && std::is_class_v<std::remove_pointer_t<T>>;
template <typename T, typename = void>
inline constexpr bool is_complete = false;
template <typename T>
inline constexpr bool is_complete<T, std::void_t<decltype(sizeof(T))>> = true;

// A runtime's argument as the driver's: addresses, enums of equal values, structs of equal layout.
template <typename To, typename From>
To pass(From from) {
    if constexpr (std::is_class_v<From>) {
        return std::bit_cast<To>(from);
    } else {
        using Theirs = std::remove_pointer_t<To>;
        using Ours = std::remove_pointer_t<From>;
        if constexpr (std::is_class_v<Theirs> && std::is_class_v<Ours>) {
            if constexpr (is_complete<Theirs> && is_complete<Ours>)
                static_assert(sizeof(Theirs) == sizeof(Ours), "the structs differ: convert by hand");
        }
        return (To)from;
    }
}

inline CUdeviceptr device_address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* to_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace weft::cudart

// Leaves the function with the error of a driver call, or of one of ours, if it failed.
#define WEFT_TRY(call)                                                           \
    do {                                                                         \
        if (const auto weft_result = (call); static_cast<int>(weft_result) != 0) \
            return static_cast<cudaError_t>(weft_result);                        \
    } while (false)
