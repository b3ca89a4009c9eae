#include "driver/proc_address.h"

#include <algorithm>
#include <cstring>

#include "gen/cuda_names.h"

namespace weft::driver {
namespace {

const NameEntry* find_name(std::string_view name) {
    const auto less = [](const NameEntry& entry, std::string_view wanted) { return entry.name < wanted; };
    const NameEntry* entry = std::lower_bound(kNames, kNames + kNameCount, name, less);
    return entry != kNames + kNameCount && name == entry->name ? entry : nullptr;
}

// The newest variant not newer than the version; variants are sorted by version.
const NameVariant* find_variant(std::span<const NameVariant> variants, int cuda_version, bool per_thread) {
    const NameVariant* found = nullptr;
    for (const NameVariant& variant : variants) {
        if (variant.per_thread == per_thread && static_cast<std::int64_t>(variant.since) <= cuda_version)
            found = &variant;
    }
    return found;
}

}  // namespace

ProcAddress find_proc_address(std::span<void* const> addresses, std::string_view name, int cuda_version,
                              cuuint64_t flags) {
    const NameEntry* entry = find_name(name);
    if (entry == nullptr) return {};
    const std::span<const NameVariant> variants(kVariants + entry->first, entry->count);
    const NameVariant* variant = nullptr;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0)
        variant = find_variant(variants, cuda_version, true);
    if (variant == nullptr) variant = find_variant(variants, cuda_version, false);
    if (variant == nullptr) return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
    return {addresses[variant->symbol], CU_GET_PROC_ADDRESS_SUCCESS};
}

CUresult get_proc_address(std::span<void* const> addresses, int driver_version, const char* name, void** function,
                          int cuda_version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
    constexpr cuuint64_t kKnownFlags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == nullptr || function == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (cuda_version > driver_version) return CUDA_ERROR_INVALID_VALUE;
    const ProcAddress found = find_proc_address(addresses, name, cuda_version, flags);
    *function = found.address;
    if (status != nullptr) *status = found.query;
    // Without a status the result is all that tells; with one the manual asks for SUCCESS and a null pointer.
    return found.address != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace weft::driver
