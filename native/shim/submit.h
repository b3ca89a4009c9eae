// Sends frames that are ordered in a CUDA stream: takes credit first, so that a stream that does not advance on the GPU
// slows its own sender and nobody else. Every frame with a stream field counts, waiting ones too
// (docs/design/call-path.md).
#pragma once

#include <type_traits>

#include "shim/captured.h"
#include "shim/current.h"
#include "shim/runtime.h"

namespace weft::shim {

// Waits, receiving meanwhile, until the stream may have one more frame (and so many payload bytes) outstanding. False:
// session lost.
bool take_credit(Stream& stream, std::uint64_t payload_bytes);

template <typename Frame, typename... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<Frame, Others> || ...);
// Fills and copies within the device, which may touch unified memory; other calls look at their addresses themselves.
template <typename Frame>
inline constexpr bool kFillsOrCopies =
    kIsOneOf<Frame, wire::MemcpyDtoD, wire::MemcpyDtoDAsync, wire::CopyBoxD2d, wire::MemsetD8, wire::MemsetD16,
             wire::MemsetD32, wire::MemsetD8Async, wire::MemsetD16Async, wire::MemsetD32Async, wire::MemsetD2D8,
             wire::MemsetD2D16, wire::MemsetD2D32, wire::MemsetD2D8Async, wire::MemsetD2D16Async,
             wire::MemsetD2D32Async>;
// Those after which the program may look at unified memory at once.
template <typename Frame>
inline constexpr bool kFillsAtOnce = kIsOneOf<Frame, wire::MemcpyDtoD, wire::MemsetD8, wire::MemsetD16, wire::MemsetD32,
                                              wire::MemsetD2D8, wire::MemsetD2D16, wire::MemsetD2D32>;

// Waits for the stream.
CUresult synchronize(Stream& stream);

template <typename Frame, typename Fill>
CUresult submit(Stream& stream, std::size_t tail_bytes, Fill&& fill) {
    Runtime& runtime = *Runtime::get();
    if (graph::is_any_capturing()) [[unlikely]] {
        if (is_capturing(stream) && kFillsOrCopies<Frame>) {
            Frame frame{};
            fill(frame, nullptr);
            return capture_frame(stream, frame);
        }
        CUresult result;
        if (is_refused(stream, &result)) return result;
    }
    if constexpr (kFillsOrCopies<Frame>) {
        if (runtime.unified().is_used()) [[unlikely]] {
            if (const CUresult ready = runtime.unified().before_work(stream); ready != CUDA_SUCCESS) return ready;
        }
    }
    if (!take_credit(stream, 0)) return Session::kLost;
    const CUresult sent =
        runtime.session().send<Frame>(stream.context->number, tail_bytes, [&](Frame& frame, std::byte* tail) {
            frame.stream = stream.number;
            fill(frame, tail);
            stream.last_work.store(runtime.progress().next(), std::memory_order_relaxed);
        });
    if constexpr (kFillsAtOnce<Frame>) {
        if (sent == CUDA_SUCCESS && runtime.unified().is_used()) [[unlikely]]
            return synchronize(stream);
    }
    return sent;
}

template <typename Frame, typename Fill>
Reply submit_and_wait(Stream& stream, std::size_t tail_bytes, Fill&& fill) {
    Runtime& runtime = *Runtime::get();
    if (graph::is_any_capturing()) [[unlikely]] {
        CUresult result;
        if (is_refused(stream, &result)) return Reply{result, {}};
    }
    if (!take_credit(stream, 0)) return Reply{Session::kLost, {}};
    std::uint64_t work = 0;
    Reply reply = runtime.session().call<Frame>(stream.context->number, tail_bytes, [&](Frame& frame, std::byte* tail) {
        frame.stream = stream.number;
        fill(frame, tail);
        work = runtime.progress().next();
        stream.last_work.store(work, std::memory_order_relaxed);
    });
    runtime.output().write();
    // The answer to a frame of a stream comes when the stream is done up to it.
    if (reply.status == CUDA_SUCCESS && stream.done_work.load() < work) stream.done_work.store(work);
    return reply;
}

template <typename Frame, typename Fill>
CUresult submit_payload(Stream& stream, std::span<const std::byte> payload, Fill&& fill) {
    if (graph::is_any_capturing()) [[unlikely]] {
        CUresult result;
        if (is_refused(stream, &result)) return result;
    }
    Runtime& runtime = *Runtime::get();
    if (!take_credit(stream, payload.size())) return Session::kLost;
    return runtime.session().send_payload<Frame>(
        stream.context->number, payload,
        [&](Frame& frame) {
            frame.stream = stream.number;
            fill(frame);
        },
        [&] { stream.last_work.store(runtime.progress().next(), std::memory_order_relaxed); });
}

// What a waiting call returns: the status of its reply, which also settles the context's errors if it is sticky.
CUresult settle(Context& context, CUresult status);

}  // namespace weft::shim
