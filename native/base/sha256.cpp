#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace weft {

namespace {

constexpr std::size_t kBlockBytes = 64;

// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::array<std::uint32_t, 8> kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

std::uint32_t load_big(const std::uint8_t* from) {
    std::uint32_t word;
    std::memcpy(&word, from, sizeof word);
    return __builtin_bswap32(word);
}

void store_big(std::uint8_t* to, std::uint32_t word) {
    word = __builtin_bswap32(word);
    std::memcpy(to, &word, sizeof word);
}

void compress_one(std::uint32_t* state, const std::uint8_t* block) {
    std::uint32_t w[64];
    for (int t = 0; t < 16; ++t) w[t] = load_big(block + 4 * t);
    for (int t = 16; t < 64; ++t) {
        std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
        std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    std::uint32_t v[8];
    std::memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; ++t) {
        std::uint32_t sum1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
        std::uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        std::uint32_t first = v[7] + sum1 + choose + kRound[t] + w[t];
        std::uint32_t sum0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
        std::uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        std::memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += first;
        v[0] = first + sum0 + majority;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
}

#if defined(__x86_64__)

// The SHA extensions keep the state as ABEF and CDGH and do four rounds per pair of sha256rnds2.
__attribute__((target("sha,sse4.1"))) void compress_sha_ni(std::uint32_t* state, const std::uint8_t* blocks,
                                                           std::size_t count) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
    __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; count > 0; --count, blocks += kBlockBytes) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; ++i) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), swap);
        }
#pragma GCC unroll 16
        for (int group = 0; group < 16; ++group) {
            __m128i& now = w[group & 3];
            if (group >= 4) {  // the schedule: now holds W[t-16..t-13]
                const __m128i last = w[(group + 3) & 3];
                const __m128i seven = _mm_alignr_epi8(last, w[(group + 2) & 3], 4);
                now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(group + 1) & 3]), seven);
                now = _mm_sha256msg2_epu32(now, last);
            }
            __m128i sum = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + group));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_ni() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    return (b & (1u << 29)) != 0;
}

#endif

}  // namespace

namespace sha256_detail {

void compress_portable(std::uint32_t* state, const std::uint8_t* blocks, std::size_t count) {
    for (; count > 0; --count, blocks += kBlockBytes) compress_one(state, blocks);
}

Compress best_compress() {
#if defined(__x86_64__)
    static const Compress best = has_sha_ni() ? compress_sha_ni : compress_portable;
    return best;
#else
    return compress_portable;
#endif
}

}  // namespace sha256_detail

Sha256::Sha256() : state_(kInitial), block_{} {}

void Sha256::update(std::span<const std::byte> data) {
    const auto compress = sha256_detail::best_compress();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
    std::size_t left = data.size();
    total_bytes_ += left;
    if (block_used_ > 0) {
        std::size_t take = std::min(left, kBlockBytes - block_used_);
        std::memcpy(block_.data() + block_used_, bytes, take);
        block_used_ += take;
        bytes += take;
        left -= take;
        if (block_used_ < kBlockBytes) return;
        compress(state_.data(), block_.data(), 1);
        block_used_ = 0;
    }
    std::size_t whole = left / kBlockBytes;
    if (whole > 0) compress(state_.data(), bytes, whole);
    block_used_ = left % kBlockBytes;
    if (block_used_ > 0) std::memcpy(block_.data(), bytes + whole * kBlockBytes, block_used_);
}

Sha256Digest Sha256::finish() {
    const auto compress = sha256_detail::best_compress();
    const std::uint64_t bits = total_bytes_ * 8;
    block_[block_used_++] = 0x80;
    if (block_used_ > kBlockBytes - 8) {
        std::memset(block_.data() + block_used_, 0, kBlockBytes - block_used_);
        compress(state_.data(), block_.data(), 1);
        block_used_ = 0;
    }
    std::memset(block_.data() + block_used_, 0, kBlockBytes - 8 - block_used_);
    store_big(block_.data() + 56, static_cast<std::uint32_t>(bits >> 32));
    store_big(block_.data() + 60, static_cast<std::uint32_t>(bits));
    compress(state_.data(), block_.data(), 1);
    Sha256Digest digest;
    for (std::size_t i = 0; i < state_.size(); ++i) store_big(digest.data() + 4 * i, state_[i]);
    return digest;
}

Sha256Digest sha256(std::span<const std::byte> data) {
    Sha256 hash;
    hash.update(data);
    return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (std::uint8_t byte : digest) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

}  // namespace weft
