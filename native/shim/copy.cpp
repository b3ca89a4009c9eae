#include "shim/copy.h"

#include <algorithm>
#include <cstring>

#include "shim/submit.h"

namespace weft::shim {
namespace {

// The bytes leave (or are copied away) before this returns.
CUresult send_now(Stream& stream, CUdeviceptr destination, const std::byte* source, std::uint64_t size_bytes) {
    if (size_bytes <= wire::kMaxInlineBytes) {
        return submit<wire::CopyH2dInline>(stream, size_bytes, [&](auto& frame, std::byte* tail) {
            frame.destination = destination;
            frame.size_bytes = static_cast<std::uint32_t>(size_bytes);
            std::memcpy(tail, source, size_bytes);
        });
    }
    const std::uint64_t piece = Runtime::get()->session().payload_piece_bytes();
    for (std::uint64_t offset = 0; offset < size_bytes; offset += piece) {
        const std::uint64_t size = std::min(piece, size_bytes - offset);
        const CUresult sent = submit_payload<wire::CopyH2d>(
            stream, {source + offset, size}, [&](auto& frame) { frame.destination = destination + offset; });
        if (sent != CUDA_SUCCESS) return sent;
    }
    return CUDA_SUCCESS;
}

// The executor reads the shared segment by itself.
CUresult send_in_place(Stream& stream, CUdeviceptr destination, const HostRange& range, const void* source,
                       std::uint64_t size_bytes, CopyMode mode) {
    const auto fill = [&](wire::CopyH2dSegment& frame, std::byte*) {
        frame.destination = destination;
        frame.size_bytes = size_bytes;
        frame.offset = range.offset + (reinterpret_cast<std::uint64_t>(source) - range.address);
        frame.segment = range.segment;
    };
    if (mode == CopyMode::asynchronous) return submit<wire::CopyH2dSegment>(stream, 0, fill);
    return settle(*stream.context, submit_and_wait<wire::CopyH2dSegment>(stream, 0, fill).status);
}

// The executor asks for the bytes when the stream gets there.
CUresult send_when_asked(Stream& stream, CUdeviceptr destination, const void* source, std::uint64_t size_bytes) {
    const std::uint32_t pull = Runtime::get()->open_pull(source, size_bytes);
    return submit<wire::CopyH2dPull>(stream, 0, [&](auto& frame, std::byte*) {
        frame.destination = destination;
        frame.size_bytes = size_bytes;
        frame.pull = pull;
    });
}

CUresult receive_in_place(Stream& stream, const HostRange& range, void* destination, CUdeviceptr source,
                          std::uint64_t size_bytes, CopyMode mode) {
    const auto fill = [&](wire::CopyD2hSegment& frame, std::byte*) {
        frame.source = source;
        frame.size_bytes = size_bytes;
        frame.offset = range.offset + (reinterpret_cast<std::uint64_t>(destination) - range.address);
        frame.segment = range.segment;
    };
    if (mode == CopyMode::asynchronous) return submit<wire::CopyD2hSegment>(stream, 0, fill);
    return settle(*stream.context, submit_and_wait<wire::CopyD2hSegment>(stream, 0, fill).status);
}

}  // namespace

CUresult copy_to_device(Stream& stream, CUdeviceptr destination, const void* source, std::uint64_t size_bytes,
                        CopyMode mode) {
    if (size_bytes == 0) return CUDA_SUCCESS;
    if (is_capturing(stream) && mode == CopyMode::asynchronous) [[unlikely]]
        return capture_copy(stream, CU_MEMORYTYPE_DEVICE, reinterpret_cast<const void*>(destination),
                            CU_MEMORYTYPE_HOST, source, size_bytes);
    Runtime& runtime = *Runtime::get();
    const auto* bytes = static_cast<const std::byte*>(source);
    const auto range = runtime.host_memory().find(source, size_bytes);
    if (range && range->segment != 0) return send_in_place(stream, destination, *range, source, size_bytes, mode);
    if (runtime.callbacks().is_outstanding()) {
        // A host function before it in the stream may still write the source.
        if (range && mode == CopyMode::asynchronous) return send_when_asked(stream, destination, source, size_bytes);
        const Reply reply = submit_and_wait<wire::StreamSync>(stream, 0, [](auto&, std::byte*) {});
        if (reply.status != CUDA_SUCCESS) return settle(*stream.context, reply.status);
    }
    if (!range) return send_now(stream, destination, bytes, size_bytes);
    Transfers& transfers = runtime.session().transfers();
    if (!transfers.overlaps(source, size_bytes)) return send_now(stream, destination, bytes, size_bytes);
    // Work in flight may still write the source.
    if (mode == CopyMode::asynchronous) return send_when_asked(stream, destination, source, size_bytes);
    if (!runtime.session().wait_until([&] { return !transfers.overlaps(source, size_bytes); })) return Session::kLost;
    return send_now(stream, destination, bytes, size_bytes);
}

CUresult copy_from_device(Stream& stream, void* destination, CUdeviceptr source, std::uint64_t size_bytes,
                          CopyMode mode) {
    if (size_bytes == 0) return CUDA_SUCCESS;
    if (is_capturing(stream) && mode == CopyMode::asynchronous) [[unlikely]]
        return capture_copy(stream, CU_MEMORYTYPE_HOST, destination, CU_MEMORYTYPE_DEVICE,
                            reinterpret_cast<const void*>(source), size_bytes);
    Runtime& runtime = *Runtime::get();
    Session& session = runtime.session();
    const auto range = runtime.host_memory().find(destination, size_bytes);
    // A capture refuses copies that are waited for, whatever is known already.
    const bool is_waited_for = mode == CopyMode::blocking || !range;
    if (is_waited_for && !graph::is_any_capturing() && size_bytes <= wire::kMaxInlineBytes &&
        stream.context->read_ahead.take(runtime.progress().submitted(),
                                        {source, static_cast<std::uint32_t>(size_bytes)}, destination))
        return CUDA_SUCCESS;
    if (range && range->segment != 0) return receive_in_place(stream, *range, destination, source, size_bytes, mode);
    const bool in_background = mode == CopyMode::asynchronous && range.has_value();
    const std::uint32_t transfer =
        session.transfers().open({static_cast<std::byte*>(destination), size_bytes}, in_background);
    const auto fill = [&](wire::CopyD2h& frame, std::byte*) {
        frame.source = source;
        frame.size_bytes = size_bytes;
        frame.transfer = transfer;
    };
    if (in_background) {
        session.expect_inbound();
        const CUresult sent = submit<wire::CopyD2h>(stream, 0, fill);
        session.transfers().belongs_to(transfer, stream.last_work.load());
        return sent;
    }
    const Reply reply = submit_and_wait<wire::CopyD2h>(stream, 0, fill);
    session.transfers().close(transfer);
    return settle(*stream.context, reply.status);
}

}  // namespace weft::shim
