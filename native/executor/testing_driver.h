// A driver for tests whose work is complete when the test says so. Device memory is host memory at the addresses asked
// for; the one kernel that it runs is `add(a, b, c, n)` on floats. One per process, reset by each test.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gen/driver_table.h"

namespace weft::executor::testing {

// Parameters of the kernel `add`.
struct AddParameters {
    std::uint64_t a, b, c;
    std::uint32_t n;
};

class FakeDriver {
  public:
    static FakeDriver& get();
    // Everything back to the start; direct_access: the driver lets the CPU touch device memory.
    void reset(bool direct_access = false);
    driver::DriverTable table();

    // false: work stays pending until run_*.
    bool automatic = true;
    bool busy = false;  // cuStreamQuery answers NOT_READY whatever is pending
    CUresult next_launch = CUDA_SUCCESS;
    std::uint64_t memory_bytes = 64u << 20;
    std::set<std::uint64_t> taken;  // addresses that cannot be reserved
    std::vector<std::string> log;   // launches, copies, records, waits, in the order they were submitted

    // Runs the oldest pending operation of a stream (by the order of its creation, 0: legacy); false if there is none.
    bool run_one(int stream);
    void run_all();
    std::size_t pending() const;
    int live_contexts() const { return live_contexts_; }
    std::size_t live_events() const { return live_events_.size(); }
    std::size_t live_streams() const { return streams_.size() - 1; }
    std::size_t live_modules() const { return live_modules_; }
    std::uint64_t mapped_bytes() const;
    bool is_mapped(std::uint64_t address, std::uint64_t size) const;

  private:
    friend struct Calls;
    struct Event {
        bool complete = true;
    };
    struct Stream {
        int number = 0;
        std::deque<std::function<void()>> work;
    };
    Stream& stream(CUstream handle);
    CUstream new_stream();
    CUresult submit(CUstream handle, std::string name, std::function<void()> work);
    void run(Stream& stream);

    mutable std::recursive_mutex mutex_;
    int live_contexts_ = 0;
    std::size_t live_modules_ = 0;
    int next_stream_ = 1;
    bool direct_access_ = false;
    std::map<CUstream, Stream> streams_;
    std::set<Event*> live_events_;
    std::map<std::uint64_t, std::uint64_t> extents_;
    std::map<std::uint64_t, std::uint64_t> windows_;
};

// A test with the fake driver as new.
class DriverTest : public ::testing::Test {
  protected:
    void SetUp() override;
    static FakeDriver& fake() { return FakeDriver::get(); }
};

}  // namespace weft::executor::testing
