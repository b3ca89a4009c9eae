#include "shim/reserved_pages.h"

#include <sys/mman.h>

namespace weft::shim {
namespace {

constexpr std::uint64_t kPage = 4096;

bool reserve_page(std::uint64_t page) {
    void* wanted = reinterpret_cast<void*>(page * kPage);
    void* got =
        ::mmap(wanted, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return true;
    if (got != MAP_FAILED) ::munmap(got, kPage);
    return false;
}

}  // namespace

bool ReservedPages::acquire(std::uint64_t address, std::uint64_t size_bytes) {
    const std::uint64_t first = address / kPage, end = (address + size_bytes + kPage - 1) / kPage;
    for (std::uint64_t page = first; page < end; ++page) {
        auto known = pages_.find(page);
        if (known != pages_.end()) {
            ++known->second;
        } else if (reserve_page(page)) {
            pages_.emplace(page, 1);
        } else {
            release(first * kPage, (page - first) * kPage);
            return false;
        }
    }
    return true;
}

void ReservedPages::release(std::uint64_t address, std::uint64_t size_bytes) {
    const std::uint64_t first = address / kPage, end = (address + size_bytes + kPage - 1) / kPage;
    for (std::uint64_t page = first; page < end; ++page) {
        auto known = pages_.find(page);
        if (known == pages_.end() || --known->second > 0) continue;
        ::munmap(reinterpret_cast<void*>(page * kPage), kPage);
        pages_.erase(known);
    }
}

}  // namespace weft::shim
