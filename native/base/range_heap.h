// Carves ranges out of address space that is added piece by piece. Pure bookkeeping: touches no memory, takes no lock.
// Used for device memory in the address window (native/shim/device_memory) and for page-locked host segments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weft {

class RangeHeap {
  public:
    // alignment: a power of two; sizes are rounded up to it and every range starts on it.
    explicit RangeHeap(std::uint64_t alignment) : alignment_(alignment) {}

    // Adds free space. It must not overlap what was added before; adjacent pieces join.
    void add(std::uint64_t address, std::uint64_t size);
    // Takes space out again; false (nothing changed) unless all of it is free.
    bool remove(std::uint64_t address, std::uint64_t size);

    // Best fit. nullopt when no free piece is large enough. size > 0.
    std::optional<std::uint64_t> allocate(std::uint64_t size);
    // The same, on a multiple of `alignment`: a power of two, at least the heap's own.
    std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);
    // Ends the range that starts at address without making its space free yet (it may still be in use by work in
    // flight); returns its rounded size, or nullopt if no range starts there.
    std::optional<std::uint64_t> detach(std::uint64_t address);
    // Makes a detached range live again, as it was.
    void attach(std::uint64_t address, std::uint64_t size);
    // Makes detached space free.
    void release(std::uint64_t address, std::uint64_t size) { insert_free(address, size); }

    struct Range {
        std::uint64_t address = 0;
        std::uint64_t size = 0;     // as asked for
        std::uint64_t rounded = 0;  // as taken
    };
    // The live range that contains address.
    std::optional<Range> find(std::uint64_t address) const;

    std::uint64_t used_bytes() const { return used_bytes_; }  // live ranges, rounded
    std::uint64_t free_bytes() const { return free_bytes_; }
    // Size of the free piece that ends exactly at `end`, 0 if none.
    std::uint64_t free_tail(std::uint64_t end) const;
    std::uint64_t round(std::uint64_t size) const { return (size + alignment_ - 1) & ~(alignment_ - 1); }
    std::size_t live_count() const { return used_.size(); }
    bool is_free(std::uint64_t address, std::uint64_t size) const;
    // For tests: free pieces are disjoint, joined, and the sums agree.
    bool check_invariants() const;

  private:
    void insert_free(std::uint64_t address, std::uint64_t size);
    std::uint64_t take(std::uint64_t address, std::uint64_t skipped, std::uint64_t size);
    void erase_free(std::map<std::uint64_t, std::uint64_t>::iterator piece);

    std::uint64_t alignment_;
    std::uint64_t used_bytes_ = 0;
    std::uint64_t free_bytes_ = 0;
    std::map<std::uint64_t, std::uint64_t> free_;                            // address -> size
    std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;         // (size, address), same pieces
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> used_;  // address -> (size asked, rounded)
};

}  // namespace weft
