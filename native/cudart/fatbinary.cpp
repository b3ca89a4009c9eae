#include "cudart/fatbinary.h"

#include <span>

#include "cudart/entry.h"
#include "fatbin/container.h"

namespace weft::cudart {
namespace {

constexpr std::uint32_t kVersionLinked = 2;

struct Wrapper {
    std::uint32_t magic, version;
    const void* data;
    void* const* parts;  // version 2: images that the linker left to be linked, up to a null
};

// The whole image; empty if it is none. The program vouches for its length.
std::span<const std::byte> image_at(const void* data) {
    const auto* header = static_cast<const fatbin::Header*>(data);
    if (header->magic != fatbin::kMagic) return {};
    return {static_cast<const std::byte*>(data),
            static_cast<std::size_t>(header->header_bytes + header->entries_bytes)};
}

// A part is an image, or a wrapper around one.
std::span<const std::byte> part_image(const void* part) {
    const auto* wrapper = static_cast<const Wrapper*>(part);
    return image_at(wrapper->magic == fatbin::kWrapperMagic ? wrapper->data : part);
}

unsigned current_sm() {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    (void)driver().cuCtxGetDevice(&device);
    (void)driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    (void)driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    return static_cast<unsigned>(10 * major + minor);
}

bool has_ptx_for(std::span<const std::byte> image, unsigned sm) {
    fatbin::Reader reader(image);
    while (const auto entry = reader.next())
        if (entry->kind == fatbin::Kind::ptx && entry->sm <= sm) return true;
    return false;
}

CUresult link_parts(CUlinkState state, const Wrapper& wrapper, bool only_ptx, CUlibrary* library) {
    for (void* const* part = wrapper.parts; *part != nullptr; ++part) {
        const auto image = part_image(*part);
        if (image.empty()) return CUDA_ERROR_INVALID_IMAGE;
        if (only_ptx && !has_ptx_for(image, current_sm())) continue;
        const CUresult added =
            driver().cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, const_cast<std::byte*>(image.data()), image.size(),
                                      "part of the program", 0, nullptr, nullptr);
        if (added != CUDA_SUCCESS) return added;
    }
    void* linked = nullptr;
    std::size_t size_bytes = 0;
    const CUresult completed = driver().cuLinkComplete(state, &linked, &size_bytes);
    if (completed != CUDA_SUCCESS) return completed;
    return driver().cuLibraryLoadData(library, linked, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

// The parts of a program compiled with -rdc=true, where nvcc could not link them because they hold PTX only. One of
// them is the toolkit's code for launches from kernels, machine code only: where there is none for the device, it is
// left out, and what would need it is then named by the linker.
cudaError_t load_linked(const Wrapper& wrapper, CUlibrary* library) {
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    for (const bool only_ptx : {false, true}) {
        CUlinkState state;
        char log[512] = "";
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        WEFT_TRY(driver().cuLinkCreate_v2(2, options, values, &state));
        result = link_parts(state, wrapper, only_ptx, library);
        (void)driver().cuLinkDestroy(state);
        if (result == CUDA_SUCCESS) return cudaSuccess;
        if (result != CUDA_ERROR_NO_BINARY_FOR_GPU || only_ptx)
            log_failure("the program's device code cannot be linked", log);
        if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) break;
    }
    return to_error(result);
}

bool has_parts(const Wrapper& wrapper) {
    return wrapper.version == kVersionLinked && wrapper.parts != nullptr && *wrapper.parts != nullptr;
}

bool is_empty(const void* data) { return image_at(data).size() <= sizeof(fatbin::Header); }

}  // namespace

cudaError_t load_fat_binary(const void* data, CUlibrary* library) {
    const auto& wrapper = *static_cast<const Wrapper*>(data);
    if (wrapper.magic != fatbin::kWrapperMagic || wrapper.data == nullptr) return cudaErrorInvalidKernelImage;
    if (has_parts(wrapper) && is_empty(wrapper.data)) return load_linked(wrapper, library);
    const CUresult loaded = driver().cuLibraryLoadData(library, wrapper.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU && has_parts(wrapper)) return load_linked(wrapper, library);
    return to_error(loaded);
}

}  // namespace weft::cudart
