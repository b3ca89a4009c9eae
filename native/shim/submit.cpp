#include "shim/submit.h"

#include "gen/cuda_names.h"

namespace weft::shim {
namespace {

constexpr std::uint32_t kMaxFramesOut = 2048;
constexpr std::uint64_t kMaxPayloadOut = 16u << 20;

}  // namespace

bool take_credit(Stream& stream, std::uint64_t payload_bytes) {
    const std::uint32_t frames = stream.frames_out.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t payload =
        payload_bytes == 0 ? 0 : stream.payload_bytes_out.fetch_add(payload_bytes, std::memory_order_relaxed);
    if (frames <= kMaxFramesOut / 2 && payload <= kMaxPayloadOut / 2) [[likely]]
        return true;
    Session& session = Runtime::get()->session();
    if (frames % 64 == 0 || payload != 0) session.drain();
    const auto has_room = [&] {
        return stream.frames_out.load(std::memory_order_relaxed) <= kMaxFramesOut &&
               stream.payload_bytes_out.load(std::memory_order_relaxed) <= kMaxPayloadOut;
    };
    return has_room() || session.wait_until(has_room);
}

CUresult synchronize(Stream& stream) {
    return settle(*stream.context, submit_and_wait<wire::StreamSync>(stream, 0, [](auto&, std::byte*) {}).status);
}

CUresult settle(Context& context, CUresult status) {
    if (status != CUDA_SUCCESS && driver::is_sticky(status)) context.sticky.store(status);
    return status;
}

}  // namespace weft::shim
