// Device memory that all sessions of one lease hold together: a page that their executors share. One row of counters
// per session, written by that session alone; the server clears the row of one that has gone. Design note:
// docs/design/server.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace weft::executor {

class LeaseUsage {
  public:
    static constexpr std::size_t kSlots = 64, kDevices = 64;
    static constexpr std::size_t kPageBytes = kSlots * kDevices * sizeof(std::uint64_t);

    // The page of a lease as row `slot` of it. What the row holds already (the server's charge for a further context)
    // stays charged.
    static Result<std::unique_ptr<LeaseUsage>> open(int fd, std::size_t slot);
    ~LeaseUsage();
    LeaseUsage(const LeaseUsage&) = delete;
    LeaseUsage& operator=(const LeaseUsage&) = delete;

    // This session holds so much of the device now.
    void set(std::size_t device, std::uint64_t bytes);
    // What is charged to the lease beside that.
    std::uint64_t others(std::size_t device) const;

  private:
    using Row = std::atomic<std::uint64_t>[kDevices];
    LeaseUsage(Row* rows, std::size_t slot);

    Row* rows_;
    std::size_t slot_;
    std::uint64_t charge_[kDevices];
};

}  // namespace weft::executor
