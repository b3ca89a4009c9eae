// See lease_usage.h.
#include "executor/lease_usage.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace weft::executor {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the page is shared between processes");

Result<std::unique_ptr<LeaseUsage>> LeaseUsage::open(int fd, std::size_t slot) {
    if (slot >= kSlots)
        return Status::error(ErrorCode::invalid_argument, "--usage-slot: at most " + std::to_string(kSlots - 1));
    struct stat info{};
    if (::fstat(fd, &info) != 0) return Status::from_errno("--usage-fd", errno);
    if (info.st_size < static_cast<off_t>(kPageBytes))
        return Status::error(ErrorCode::invalid_argument, "--usage-fd: the page is too short");
    void* at = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return Status::from_errno("mmap of the lease's usage", errno);
    return std::unique_ptr<LeaseUsage>(new LeaseUsage(static_cast<Row*>(at), slot));
}

LeaseUsage::LeaseUsage(Row* rows, std::size_t slot) : rows_(rows), slot_(slot) {
    for (std::size_t device = 0; device < kDevices; ++device) charge_[device] = rows_[slot_][device].load();
}

LeaseUsage::~LeaseUsage() { ::munmap(rows_, kPageBytes); }

void LeaseUsage::set(std::size_t device, std::uint64_t bytes) { rows_[slot_][device].store(charge_[device] + bytes); }

std::uint64_t LeaseUsage::others(std::size_t device) const {
    std::uint64_t sum = charge_[device];
    for (std::size_t row = 0; row < kSlots; ++row) {
        if (row != slot_) sum += rows_[row][device].load();
    }
    return sum;
}

}  // namespace weft::executor
