#include "fatbin/decompress.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

namespace weft::fatbin {
namespace {

using ZstdDecompress = std::size_t (*)(void* out, std::size_t capacity, const void* in, std::size_t size);

// Null where the library is missing. It stays loaded.
ZstdDecompress zstd() {
    static std::once_flag once;
    static ZstdDecompress function = nullptr;
    std::call_once(once, [] {
        if (void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL))
            function = reinterpret_cast<ZstdDecompress>(dlsym(library, "ZSTD_decompress"));
    });
    return function;
}

// A length of LZ4: the nibble, and if it is 15, bytes to add up to the first that is not 255.
bool read_length(std::span<const std::byte> in, std::size_t* at, std::size_t* length) {
    if (*length != 15) return true;
    for (;;) {
        if (*at == in.size()) return false;
        const auto more = static_cast<std::size_t>(in[(*at)++]);
        *length += more;
        if (more != 255) return true;
    }
}

// A match may overlap what it writes: then its bytes repeat.
void copy_match(std::byte* out, std::size_t distance, std::size_t length) {
    if (distance >= length) {
        std::memcpy(out, out - distance, length);
        return;
    }
    for (std::size_t i = 0; i < length; ++i) out[i] = (out - distance)[i];
}

}  // namespace

bool decompress_lz4(std::span<const std::byte> in, std::span<std::byte> out) {
    std::size_t at = 0;
    std::size_t filled = 0;
    while (at < in.size()) {
        const auto token = static_cast<unsigned>(in[at++]);
        std::size_t literals = token >> 4;
        if (!read_length(in, &at, &literals)) return false;
        if (literals > in.size() - at || literals > out.size() - filled) return false;
        if (literals != 0) std::memcpy(out.data() + filled, in.data() + at, literals);
        at += literals;
        filled += literals;
        if (at == in.size()) break;  // the last sequence has no match
        if (in.size() - at < 2) return false;
        const std::size_t distance = static_cast<std::size_t>(in[at]) | static_cast<std::size_t>(in[at + 1]) << 8;
        at += 2;
        std::size_t match = token & 15;
        if (!read_length(in, &at, &match)) return false;
        match += 4;
        if (distance == 0 || distance > filled || match > out.size() - filled) return false;
        copy_match(out.data() + filled, distance, match);
        filled += match;
    }
    return filled == out.size();
}

Result<std::vector<std::byte>> decompress(const Entry& entry) {
    const auto damaged = [] {
        return Status::error(ErrorCode::invalid_argument, "a compressed entry of the fat binary is damaged");
    };
    const Compression compression = entry.compression();
    if (compression == Compression::none) return std::vector<std::byte>(entry.payload.begin(), entry.payload.end());
    if (compression == Compression::unknown)
        return Status::error(ErrorCode::unsupported,
                             "the fat binary is compressed in an unknown way: build with -no-compress");
    if (compression == Compression::zstd && zstd() == nullptr)
        return Status::error(
            ErrorCode::unsupported,
            "the fat binary is compressed with Zstandard, and libzstd.so.1 is not installed on the machine with the "
            "GPU: install it (package libzstd1), or build with -no-compress");
    if (entry.plain_bytes == 0 || entry.plain_bytes > kMaxPlainBytes) return damaged();
    std::vector<std::byte> plain(entry.plain_bytes);
    const bool done = compression == Compression::lz4 ? decompress_lz4(entry.payload, plain)
                                                      : zstd()(plain.data(), plain.size(), entry.payload.data(),
                                                               entry.payload.size()) == plain.size();
    if (!done) return damaged();
    return plain;
}

}  // namespace weft::fatbin
