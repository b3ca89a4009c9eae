// Entry for libFuzzer (and for AFL in its persistent mode): the input's bytes are the choices.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/log.h"
#include "fuzz/frames_fuzz.h"

namespace {

class InputChoices : public weft::fuzz::Choices {
  public:
    explicit InputChoices(std::span<const std::uint8_t> input) : rest_(input) {}
    // Zeros when the input is used up.
    std::uint64_t next() override {
        std::uint64_t value = 0;
        const std::size_t size = rest_.size() < 2 ? rest_.size() : 2;
        if (size == 0) return 0;
        std::memcpy(&value, rest_.data(), size);
        rest_ = rest_.subspan(size);
        return value;
    }

  private:
    std::span<const std::uint8_t> rest_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    weft::set_log_level(weft::LogLevel::error);
    InputChoices choices({data, size});
    if (!weft::fuzz::fuzz_session(choices, size / 2 + 1, 50, size % 2 == 0).leaked.empty()) __builtin_trap();
    return 0;
}
