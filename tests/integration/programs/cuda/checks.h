// What the CUDA programs of the tests share: every call is checked, every number is checked, the last line says "ok".
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        const cudaError_t check_error = (call);                                                       \
        if (check_error != cudaSuccess) {                                                             \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(check_error)); \
            std::exit(1);                                                                             \
        }                                                                                             \
    } while (0)

#define EXPECT(condition)                                                        \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

#define EXPECT_ERROR(error, call)                                                                     \
    do {                                                                                              \
        const cudaError_t check_error = (call);                                                       \
        if (check_error != (error)) {                                                                 \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(check_error)); \
            std::exit(1);                                                                             \
        }                                                                                             \
    } while (0)
