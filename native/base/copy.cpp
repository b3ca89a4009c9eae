// Non-temporal stores save reading the destination's cache lines. Which width to use is asked of the processor once.
#include "base/copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

#if defined(__x86_64__)
constexpr std::size_t kBlockBytes = 256;
constexpr std::size_t kPrefetchBytes = 1024;

__attribute__((target("avx2"))) void stream_avx2(char* to, const char* from, std::size_t blocks) {
    for (std::size_t i = 0; i < blocks; ++i, to += kBlockBytes, from += kBlockBytes) {
        for (std::size_t line = 0; line < kBlockBytes; line += 64) _mm_prefetch(from + kPrefetchBytes + line, _MM_HINT_NTA);
        __m256i part[8];
        for (int j = 0; j < 8; ++j) part[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + j);
        for (int j = 0; j < 8; ++j) _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + j, part[j]);
    }
    _mm_sfence();
}

void stream_sse2(char* to, const char* from, std::size_t blocks) {
    for (std::size_t i = 0; i < blocks * (kBlockBytes / 64); ++i, to += 64, from += 64) {
        _mm_prefetch(from + kPrefetchBytes, _MM_HINT_NTA);
        __m128i part[4];
        for (int j = 0; j < 4; ++j) part[j] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + j);
        for (int j = 0; j < 4; ++j) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + j, part[j]);
    }
    _mm_sfence();
}
#endif

}  // namespace

void copy_streaming(void* destination, const void* source, std::size_t size) {
#if defined(__x86_64__)
    if (size >= kStreamingBytes) {
        static const bool has_avx2 = __builtin_cpu_supports("avx2");
        char* to = static_cast<char*>(destination);
        const char* from = static_cast<const char*>(source);
        const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
        const std::size_t blocks = (size - head) / kBlockBytes;
        const std::size_t middle = blocks * kBlockBytes;
        std::memcpy(to, from, head);
        (has_avx2 ? stream_avx2 : stream_sse2)(to + head, from + head, blocks);
        std::memcpy(to + head + middle, from + head + middle, size - head - middle);
        return;
    }
#endif
    std::memcpy(destination, source, size);
}

}  // namespace weft
