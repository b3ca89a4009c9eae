// Writes the frames of a fuzzing run: good ones in a plausible order, so that the session gets deep, and then spoils
// some of them. All randomness comes from the seed or the fuzzer's input. Design note: docs/design/executor.md,
// "Fuzzing".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace weft::fuzz {

// A source of choices: a seeded generator, or the bytes of a fuzzer.
class Choices {
  public:
    virtual ~Choices() = default;
    virtual std::uint64_t next() = 0;
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
};

struct WrittenFrame {
    std::vector<std::byte> frame, payload;
};

class FrameWriter {
  public:
    static constexpr std::uint64_t kWindow = 0x520000000000;
    static constexpr std::uint64_t kStride = 1ull << 30;

    // spoil_one_in: how rarely a frame is damaged; 0: never.
    FrameWriter(Choices& choices, std::uint64_t spoil_one_in) : choices_(choices), spoil_one_in_(spoil_one_in) {}
    // The frames that begin every session: HELLO, a context, memory, a module, streams, events.
    std::vector<WrittenFrame> opening();
    WrittenFrame next();

  private:
    template <typename Frame>
    WrittenFrame write(const Frame& fields, std::size_t tail_bytes = 0, std::size_t payload_bytes = 0);
    WrittenFrame plausible();
    WrittenFrame copy();
    WrittenFrame box();
    WrittenFrame transfer();
    WrittenFrame object();
    WrittenFrame event();
    WrittenFrame module();
    WrittenFrame launch();
    WrittenFrame host();
    WrittenFrame graph();
    // Frames that make a graph follow.
    WrittenFrame begin_graph();
    WrittenFrame graph_node(std::uint32_t graph, std::uint32_t node, const WrittenFrame& inner);
    WrittenFrame garbage();
    void spoil(WrittenFrame* frame);
    std::uint32_t number() { return static_cast<std::uint32_t>(choices_.below(6)); }
    std::uint64_t address();
    std::uint64_t size();

    Choices& choices_;
    std::uint64_t spoil_one_in_;
    std::uint32_t request_ = 0;
    std::uint32_t fresh_ = 100;
    std::uint32_t graph_ = 0;           // the newest
    std::deque<WrittenFrame> pending_;  // to come before anything else
    std::uint32_t context_ = 1;
};

}  // namespace weft::fuzz
