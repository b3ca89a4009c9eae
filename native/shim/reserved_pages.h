// Address space of this process that is kept free because device memory lies there on the other side: pages, counted,
// since the globals of two modules may share one. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

namespace weft::shim {

class ReservedPages {
  public:
    // False, with nothing changed, when this process uses one of the pages itself.
    bool acquire(std::uint64_t address, std::uint64_t size_bytes);
    void release(std::uint64_t address, std::uint64_t size_bytes);
    std::size_t page_count() const { return pages_.size(); }

  private:
    std::map<std::uint64_t, int> pages_;  // page number -> holders
};

}  // namespace weft::shim
