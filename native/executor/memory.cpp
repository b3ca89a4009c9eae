// See memory.h.
#include "executor/memory.h"

#include <algorithm>

namespace weft::executor {

namespace {

constexpr std::uint64_t kMinGranularity = 2u << 20;

CUmemAllocationProp property_of(CUdevice device) {
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    property.location.id = device;
    return property;
}

}  // namespace

bool MemoryAccount::take(std::uint64_t bytes) {
    if (bytes > free_bytes()) return false;
    used_bytes_ += bytes;
    if (usage_ != nullptr) {
        // Told first, looked at second: two sessions that take at the same time may both be refused, never both be
        // served too much.
        usage_->set(device_, used_bytes_);
        if (usage_->others(device_) + used_bytes_ > cap_bytes_) {
            give(bytes);
            return false;
        }
    }
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
    return true;
}

void MemoryAccount::give(std::uint64_t bytes) {
    used_bytes_ -= bytes;
    if (usage_ != nullptr) usage_->set(device_, used_bytes_);
}

std::uint64_t MemoryAccount::free_bytes() const {
    const std::uint64_t held = used_bytes_ + (usage_ != nullptr ? usage_->others(device_) : 0);
    return held < cap_bytes_ ? cap_bytes_ - held : 0;
}

const char* ExtentMap::check(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t granularity) const {
    if (size_bytes == 0 || size_bytes % granularity != 0 || address % granularity != 0)
        return "extent is not a multiple of the granularity";
    if (address < base_ || size_bytes > size_bytes_ || address - base_ > size_bytes_ - size_bytes)
        return "extent lies outside the window";
    auto next = extents_.lower_bound(address);
    if (next != extents_.end() && next->first < address + size_bytes) return "extent overlaps another";
    if (next == extents_.begin()) return nullptr;
    --next;
    return next->first + next->second.size_bytes > address ? "extent overlaps another" : nullptr;
}

bool ExtentMap::remove(std::uint64_t address, std::uint64_t size_bytes, CUmemGenericAllocationHandle* handle) {
    const auto found = extents_.find(address);
    if (found == extents_.end() || found->second.size_bytes != size_bytes) return false;
    *handle = found->second.handle;
    extents_.erase(found);
    return true;
}

bool reserve_windows(const driver::DriverTable& driver, std::size_t count, std::uint64_t base,
                     std::uint64_t stride_bytes) {
    for (std::size_t i = 0; i < count; ++i) {
        const CUdeviceptr wanted = base + i * stride_bytes;
        CUdeviceptr got = 0;
        const CUresult result = driver.cuMemAddressReserve(&got, stride_bytes, 0, wanted, 0);
        if (result == CUDA_SUCCESS && got == wanted) continue;
        if (result == CUDA_SUCCESS) driver.cuMemAddressFree(got, stride_bytes);
        free_windows(driver, i, base, stride_bytes);
        return false;
    }
    return true;
}

void free_windows(const driver::DriverTable& driver, std::size_t count, std::uint64_t base,
                  std::uint64_t stride_bytes) {
    for (std::size_t i = 0; i < count; ++i) driver.cuMemAddressFree(base + i * stride_bytes, stride_bytes);
}

CUresult map_extent(const driver::DriverTable& driver, CUdevice device, std::uint64_t address, std::uint64_t size_bytes,
                    CUmemGenericAllocationHandle* handle) {
    const CUmemAllocationProp property = property_of(device);
    CUresult result = driver.cuMemCreate(handle, size_bytes, &property, 0);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuMemMap(address, size_bytes, 0, *handle, 0);
    if (result == CUDA_SUCCESS) {
        CUmemAccessDesc access{};
        access.location = property.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        result = driver.cuMemSetAccess(address, size_bytes, &access, 1);
        if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
        driver.cuMemUnmap(address, size_bytes);
    }
    driver.cuMemRelease(*handle);
    return result;
}

CUresult unmap_extent(const driver::DriverTable& driver, std::uint64_t address, std::uint64_t size_bytes,
                      CUmemGenericAllocationHandle handle) {
    const CUresult result = driver.cuMemUnmap(address, size_bytes);
    const CUresult released = driver.cuMemRelease(handle);
    return result != CUDA_SUCCESS ? result : released;
}

std::uint64_t mapping_granularity(const driver::DriverTable& driver, CUdevice device) {
    const CUmemAllocationProp property = property_of(device);
    std::size_t granularity = 0;
    if (driver.cuMemGetAllocationGranularity(&granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
        return kMinGranularity;
    return std::max<std::uint64_t>(granularity, kMinGranularity);
}

}  // namespace weft::executor
