// Inbound transfers: where the bytes of DATA frames go. The executor names a transfer by number and offset, never an
// address, so a wrong or hostile executor cannot write anywhere else. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/box.h"

namespace weft::shim {

class Transfers {
  public:
    // Numbers rise and are never used twice. in_background: nobody waits for it; landed and close_up_to tell of these
    // only.
    std::uint32_t open(std::span<std::byte> destination, bool in_background);
    // The bytes are those of a packed box; they are spread over its rows.
    std::uint32_t open_box(std::byte* base, const Pitches& pitches, const Box& box, bool in_background);
    // One that stays open and is filled again and again, each time after an expect().
    std::uint32_t open_repeated(std::span<std::byte> destination);
    std::uint32_t open_repeated(std::byte* base, const Pitches& pitches, const Box& box);
    void expect(std::uint32_t transfer);
    // The number of the work that it is part of; none before this.
    void belongs_to(std::uint32_t transfer, std::uint64_t work);
    // Where `size` bytes at `offset` belong; empty when there is no such transfer, they do not fit, or it is a box.
    std::span<std::byte> place(std::uint32_t transfer, std::uint64_t offset, std::uint64_t size);
    // Spreads bytes of a box; false when there is no such transfer, they do not fit, or it is none.
    bool spread(std::uint32_t transfer, std::uint64_t offset, std::span<const std::byte> bytes);
    // Counts bytes that have landed; the last ones close the transfer. True when this closed one in the background.
    bool landed(std::uint32_t transfer, std::uint64_t size);
    // All of its bytes; 0 when there is no such transfer.
    std::uint64_t size_bytes(std::uint32_t transfer) const;
    // Bytes that have landed so far.
    std::uint64_t landed_bytes(std::uint32_t transfer) const;
    void close(std::uint32_t transfer);
    // Closes background transfers of work up to `work` (they failed: their bytes never came); returns how many.
    std::size_t close_up_to(std::uint64_t work);
    // True while bytes may still land in this range.
    bool overlaps(const void* address, std::uint64_t size) const;
    bool empty() const;

  private:
    std::uint32_t repeat(std::uint32_t transfer);
    struct Rows {
        Pitches pitches;
        Box box;
    };
    struct Transfer {
        std::span<std::byte> destination;
        std::uint64_t remaining;
        bool in_background;
        std::uint64_t work = UINT64_MAX;
        std::optional<Rows> rows;  // of a box; destination is all that it spans
        bool is_repeated = false;
        std::uint64_t size_bytes = 0;  // repeated: of one filling
        std::uint32_t expected = 1;    // how often it is still going to be filled
    };
    mutable std::mutex mutex_;
    std::unordered_map<std::uint32_t, Transfer> open_;
    std::uint32_t next_ = 0;
};

}  // namespace weft::shim
