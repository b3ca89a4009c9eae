#include "cudart/fatbinary.h"

#include <cstdint>

#include "cudart/entry.h"

namespace weft::cudart {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kImageMagic = 0xba55ed50;
constexpr std::uint32_t kVersionLinked = 2;

struct Wrapper {
    std::uint32_t magic, version;
    const void* data;
    void* const* parts;  // version 2: images that the linker left to be linked, up to a null
};

struct ImageHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t payload_bytes;
};

std::size_t image_bytes(const void* image) {
    const auto* header = static_cast<const ImageHeader*>(image);
    return header->magic == kImageMagic ? header->header_bytes + header->payload_bytes : 0;
}

// The parts of a program compiled with -rdc=true, where nvcc could not link them because they hold PTX only.
cudaError_t load_linked(const Wrapper& wrapper, CUlibrary* library) {
    CUlinkState state;
    WEFT_TRY(driver().cuLinkCreate_v2(0, nullptr, nullptr, &state));
    CUresult result = CUDA_SUCCESS;
    for (void* const* part = wrapper.parts; *part != nullptr && result == CUDA_SUCCESS; ++part) {
        const auto* inner = static_cast<const Wrapper*>(*part);
        const void* image = inner->magic == kWrapperMagic ? inner->data : *part;
        result = driver().cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, const_cast<void*>(image), image_bytes(image),
                                           "part of the program", 0, nullptr, nullptr);
    }
    void* linked = nullptr;
    std::size_t size_bytes = 0;
    if (result == CUDA_SUCCESS) result = driver().cuLinkComplete(state, &linked, &size_bytes);
    if (result == CUDA_SUCCESS)
        result = driver().cuLibraryLoadData(library, linked, nullptr, nullptr, 0, nullptr, nullptr, 0);
    (void)driver().cuLinkDestroy(state);
    return to_error(result);
}

bool has_parts(const Wrapper& wrapper) {
    return wrapper.version == kVersionLinked && wrapper.parts != nullptr && *wrapper.parts != nullptr;
}

}  // namespace

cudaError_t load_fat_binary(const void* data, CUlibrary* library) {
    const auto& wrapper = *static_cast<const Wrapper*>(data);
    if (wrapper.magic != kWrapperMagic || wrapper.data == nullptr) return cudaErrorInvalidKernelImage;
    const CUresult loaded = driver().cuLibraryLoadData(library, wrapper.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU && has_parts(wrapper)) return load_linked(wrapper, library);
    return to_error(loaded);
}

}  // namespace weft::cudart
