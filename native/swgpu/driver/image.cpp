// Takes images apart. Everything read from an image is checked against its size before use.
#include "swgpu/driver/image.h"

#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>

#include "base/sha256.h"
#include "fatbin/decompress.h"
#include "swgpu/driver/log.h"

namespace weft::swdriver {
namespace {

constexpr std::size_t kMaxImageBytes = 1u << 30;
constexpr std::string_view kLinkedTag = "// weft linked image ";
constexpr std::size_t kCachedPrograms = 64;
constexpr std::size_t kCachedTextBytes = 64u << 20;

struct FatbinWrapper {
    std::uint32_t magic, version;
    const void* data;
    const void* prelinked;
};

Texts failure(CUresult result, std::string log) { return {result, std::move(log), {}, {}}; }

std::string_view until_nul(const char* text, std::size_t size) { return {text, strnlen(text, size)}; }

struct Choice {
    std::optional<fatbin::Entry> ptx;  // the newest that the device can run
    bool newer_ptx = false, binary = false;
};

void consider(const fatbin::Entry& entry, unsigned device_sm, Choice* choice) {
    if (entry.kind != fatbin::Kind::ptx) {
        choice->binary = true;
    } else if (entry.sm > device_sm) {
        choice->newer_ptx = true;
    } else if (!choice->ptx || entry.sm > choice->ptx->sm) {
        choice->ptx = entry;
    }
}

Texts payload_texts(const fatbin::Entry& entry) {
    const auto text = [](std::span<const std::byte> bytes) {
        return until_nul(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    if (entry.compression() == fatbin::Compression::none) return {CUDA_SUCCESS, {}, {text(entry.payload)}, {}};
    auto plain = fatbin::decompress(entry);
    if (!plain) {
        const bool damaged = plain.status().code() == ErrorCode::invalid_argument;
        return failure(damaged ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NOT_SUPPORTED, plain.status().text());
    }
    Texts found{CUDA_SUCCESS, {}, {}, std::move(*plain)};
    found.texts.push_back(text(found.decompressed));
    return found;
}

Texts fatbin_texts(const char* data, std::size_t size, unsigned device_sm) {
    fatbin::Header header;
    if (size != 0 && size < sizeof header) return failure(CUDA_ERROR_INVALID_IMAGE, "the fat binary is cut short");
    std::memcpy(&header, data, sizeof header);
    const std::uint64_t whole = header.header_bytes + header.entries_bytes;
    if (header.entries_bytes > kMaxImageBytes || (size != 0 && whole > size))
        return failure(CUDA_ERROR_INVALID_IMAGE, "the fat binary is damaged");
    fatbin::Reader reader(std::as_bytes(std::span(data, whole)));
    Choice choice;
    while (const auto entry = reader.next()) consider(*entry, device_sm, &choice);
    if (reader.is_damaged()) return failure(CUDA_ERROR_INVALID_IMAGE, "the fat binary is damaged");
    if (choice.ptx) return payload_texts(*choice.ptx);
    if (choice.newer_ptx)
        return failure(CUDA_ERROR_NO_BINARY_FOR_GPU, "all PTX in this fat binary is for newer devices");
    return failure(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   choice.binary ? "this fat binary holds machine code only; a software GPU needs PTX"
                                 : "this fat binary holds no code");
}

bool looks_like_text(const char* bytes, std::size_t size) {
    for (std::size_t i = 0; i < 64 && (size == 0 || i < size) && bytes[i] != '\0'; ++i) {
        const auto c = static_cast<unsigned char>(bytes[i]);
        if (c < 0x20 && std::strchr("\n\r\t\f\v", c) == nullptr) return false;
        if (c >= 0x7f && i < 4) return false;
    }
    return bytes[0] != '\0';
}

// "// weft linked image 2 1234 567\n", then the texts, each followed by a newline.
Texts linked_texts(std::string_view image) {
    const std::size_t line_end = image.find('\n');
    if (line_end == std::string_view::npos) return failure(CUDA_ERROR_INVALID_IMAGE, "the linked image is damaged");
    std::string line(image.substr(kLinkedTag.size(), line_end - kLinkedTag.size()));
    char* position = line.data();
    const unsigned long count = std::strtoul(position, &position, 10);
    std::size_t at = line_end + 1;
    Texts found;
    for (unsigned long i = 0; i < count; ++i) {
        const unsigned long bytes = std::strtoul(position, &position, 10);
        if (bytes >= image.size() - at) return failure(CUDA_ERROR_INVALID_IMAGE, "the linked image is damaged");
        found.texts.push_back(image.substr(at, bytes));
        at += bytes + 1;
    }
    if (found.texts.empty()) return failure(CUDA_ERROR_INVALID_IMAGE, "the linked image is empty");
    return found;
}

struct Cache {
    struct Entry {
        Sha256Digest hash;
        unsigned device_sm;
        std::size_t bytes;
        ProgramPtr program;
    };
    std::mutex mutex;
    std::list<Entry> entries;  // newest use first
    std::size_t bytes = 0;
};

Cache& cache() {
    static Cache& instance = *new Cache;
    return instance;
}

ProgramPtr find_cached(const Sha256Digest& hash, unsigned device_sm) {
    std::lock_guard lock(cache().mutex);
    auto& entries = cache().entries;
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
        if (entry->hash != hash || entry->device_sm != device_sm) continue;
        entries.splice(entries.begin(), entries, entry);
        return entry->program;
    }
    return nullptr;
}

void keep_cached(const Sha256Digest& hash, unsigned device_sm, std::size_t bytes, ProgramPtr program) {
    std::list<Cache::Entry> dropped;  // ends outside the lock
    std::lock_guard lock(cache().mutex);
    auto& entries = cache().entries;
    entries.push_front({hash, device_sm, bytes, std::move(program)});
    cache().bytes += bytes;
    while (entries.size() > kCachedPrograms || (cache().bytes > kCachedTextBytes && entries.size() > 1)) {
        cache().bytes -= entries.back().bytes;
        dropped.splice(dropped.end(), entries, std::prev(entries.end()));
    }
}

CUresult to_result(const Status& status) {
    return status.code() == ErrorCode::out_of_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

}  // namespace

Texts find_texts(const void* image, std::size_t size, unsigned device_sm) {
    const char* bytes = static_cast<const char*>(image);
    if (image == nullptr) return failure(CUDA_ERROR_INVALID_VALUE, "no image");
    if (size == 0 || size >= 4) {
        // PTX without a known size may be shorter than a word: look at the first byte before the word.
        const bool may_be_word = size != 0 || (bytes[0] != '\0' && bytes[1] != '\0' && bytes[2] != '\0');
        std::uint32_t magic = 0;
        if (may_be_word) std::memcpy(&magic, bytes, sizeof magic);
        if (magic == fatbin::kMagic) return fatbin_texts(bytes, size, device_sm);
        if (magic == fatbin::kWrapperMagic && (size == 0 || size >= sizeof(FatbinWrapper))) {
            FatbinWrapper wrapper;
            std::memcpy(&wrapper, bytes, sizeof wrapper);
            if (wrapper.data == nullptr) return failure(CUDA_ERROR_INVALID_IMAGE, "the fat binary wrapper is empty");
            std::memcpy(&magic, wrapper.data, sizeof magic);
            if (magic != fatbin::kMagic) return failure(CUDA_ERROR_INVALID_IMAGE, "the fat binary is damaged");
            return fatbin_texts(static_cast<const char*>(wrapper.data), 0, device_sm);
        }
        if (magic == 0x464c457f) {
            return failure(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image is machine code (cubin); a software GPU needs PTX");
        }
    }
    if (!looks_like_text(bytes, size))
        return failure(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a fat binary");
    const std::string_view text = until_nul(bytes, size != 0 ? size : kMaxImageBytes);
    if (text.starts_with(kLinkedTag)) return linked_texts(text);
    return {CUDA_SUCCESS, {}, {text}, {}};
}

Loaded compile_text(std::string_view text, unsigned device_sm) {
    const auto hash = sha256(std::as_bytes(std::span(text.data(), text.size())));
    if (ProgramPtr known = find_cached(hash, device_sm)) return {CUDA_SUCCESS, known, {}};
    auto compiled = engine::compile(text, {.device_sm = device_sm});
    if (!compiled) return {to_result(compiled.status()), nullptr, "ptx: " + compiled.status().text()};
    keep_cached(hash, device_sm, text.size(), *compiled);
    return {CUDA_SUCCESS, *compiled, {}};
}

Loaded link_programs(std::span<const ProgramPtr> programs) {
    ProgramPtr program;
    if (programs.size() == 1) {
        program = programs[0];
    } else {
        auto linked = engine::link(programs);
        if (!linked) return {to_result(linked.status()), nullptr, "link: " + linked.status().text()};
        program = *linked;
    }
    if (program->undefined().empty()) return {CUDA_SUCCESS, program, {}};
    std::string names;
    for (const std::string& name : program->undefined()) names += (names.empty() ? "'" : ", '") + name + "'";
    return {CUDA_ERROR_INVALID_PTX, nullptr, "link: undefined: " + names};
}

Loaded load_image(const void* image, std::size_t size, unsigned device_sm) {
    Texts found = find_texts(image, size, device_sm);
    if (found.result != CUDA_SUCCESS) return {found.result, nullptr, std::move(found.log)};
    std::vector<ProgramPtr> programs;
    for (std::string_view text : found.texts) {
        Loaded compiled = compile_text(text, device_sm);
        if (compiled.result != CUDA_SUCCESS) return compiled;
        programs.push_back(std::move(compiled.program));
    }
    return link_programs(programs);
}

std::string pack_linked(std::span<const std::string> texts) {
    std::string image(kLinkedTag);
    image += std::to_string(texts.size());
    for (const std::string& text : texts) image += " " + std::to_string(text.size());
    image += "\n";
    for (const std::string& text : texts) image += text + "\n";
    return image;
}

CUresult JitOptions::check() const {
    if (count_ == 0) return CUDA_SUCCESS;
    if (options_ == nullptr || values_ == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count_; ++i) {
        if (options_[i] < 0 || options_[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

void** JitOptions::find(CUjit_option option) const {
    for (unsigned i = 0; i < count_; ++i) {
        if (options_[i] == option) return &values_[i];
    }
    return nullptr;
}

// The size option holds the buffer's size on input and, afterwards, how much of it was filled.
void JitOptions::fill(CUjit_option buffer, CUjit_option size, std::string_view text) {
    void** room = find(size);
    void** target = find(buffer);
    if (room == nullptr) return;
    const std::size_t bytes = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(*room));
    std::size_t used = 0;
    if (target != nullptr && *target != nullptr && bytes > 0 && !text.empty()) {
        used = std::min(bytes - 1, text.size());
        std::memcpy(*target, text.data(), used);
        static_cast<char*>(*target)[used++] = '\0';
    } else if (target != nullptr && *target != nullptr && bytes > 0) {
        static_cast<char*>(*target)[0] = '\0';
    }
    *room = reinterpret_cast<void*>(used);
}

void JitOptions::report(CUresult result, std::string_view log) {
    const bool failed = result != CUDA_SUCCESS;
    void** verbose = find(CU_JIT_LOG_VERBOSE);
    const bool wants_info = verbose != nullptr && *verbose != nullptr;
    fill(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, failed ? log : std::string_view());
    fill(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
         failed || !wants_info ? std::string_view() : "decoded by the software GPU");
}

void log_failed_load(const Loaded& loaded, const JitOptions& options) {
    if (loaded.result == CUDA_SUCCESS || loaded.log.empty() || options.has_error_log()) return;
    log_message(LogLevel::error, loaded.log);
}

}  // namespace weft::swdriver
